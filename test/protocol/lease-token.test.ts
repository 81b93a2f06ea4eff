/** A lease token contains the name of its queue. No queue name is read from any other text. */
import t from 'tap'
import { leaseToken, queueOfLease } from '../../protocol/jobs/lease-token.ts'

t.test('a lease token contains the name of its queue, for any name', async (t) => {
  for (const queue of ['default', 'mail.eu', 'a=b', 'größe ✓', '', '=', 'x'.repeat(256)]) {
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
