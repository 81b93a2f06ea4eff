/** A lease token contains the name of its queue. No queue name is read from any other text. */
import t from 'tap'
import { api } from '../../protocol/api.ts'
import { leaseToken, queueOfLease } from '../../protocol/jobs/lease-token.ts'
import { faultsOf } from '../../protocol/rules/schema-faults/faults.ts'

t.test('a lease token contains the name of its queue, for any name', async (t) => {
  const marks = ['\ufeffmail', 'mail\ufeff', '\ufeff\ufeff', '\ufeff']
  for (const queue of [
    ...marks,
    'default',
    'mail.eu',
    'a=b',
    'größe ✓',
    '',
    '=',
    'x'.repeat(256),
  ]) {
    const token = leaseToken('abc123', queue)
    t.match(token, /^[\x21-\x7e]+$/, 'legal in a header')
    t.equal(queueOfLease(token), queue)
  }
})
t.test('any other text contains no queue name', async (t) => {
  for (const text of [
    '',
    'lt_',
    'lt_abc',
    'lt_abc.',
    'abc.default',
    'lt_a b.default',
    'lt_abc.de fault',
    'lt_abc.=zz',
    'lt_abc.=2',
    'lt_abc.=ff',
    'lt_abc.=61',
    `lt_abc.${'x'.repeat(5000)}`,
  ]) {
    t.equal(queueOfLease(text), undefined, text.slice(0, 40))
  }
})

t.test('a queue name is well-formed Unicode, because UTF-8 cannot represent others', async (t) => {
  const spec = { steps: [{ kind: 'action', config: { action_name: 'mail' } }] }
  const bodies = {
    'run.start': (queue: string) => ({ definition_id: 'wf_1', queue }),
    'workflow.create': (queue: string) => ({ name: 'w', handle: 'w', spec: { ...spec, queue } }),
    'environment.start_worker': (queue: string) => ({ queues: [queue] }),
  } as const
  for (const [name, bodyOf] of Object.entries(bodies)) {
    const { body } = api[name as keyof typeof bodies].shape
    for (const queue of ['größe ✓', '😀', '\ufeffmail', 'line\n'])
      t.strictSame(faultsOf(body, bodyOf(queue)), [], `${name} ${queue}`)
    for (const queue of ['\ud800', 'a\udc00', '\udc00\ud800', '😀\ud83d'])
      t.match(faultsOf(body, bodyOf(queue)), [{ field: /queue/, message: /must match .*Unicode/ }])
  }
})
