/** The gate of a check over HTTP: who may pass it by a resumption or by a signal to its step. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, listOf } from '../support/given.ts'
import { as, people, type person } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())
type Person = Awaited<ReturnType<typeof person>>
const [ada, bo] = (await people(s, 'ada', 'bo')) as [Person, Person]

/** Starts a run that waits for a gate, and returns the id of the run. */
const gated = async (targets: readonly string[]): Promise<unknown> => {
  const config = {
    checks: [{ name: 'never', kind: 'expr', expr: 'false' }],
    on_fail: 'gate',
    gate: { targets },
  }
  return (await s.ok('run.start', { spec: { steps: [{ id: 'c', kind: 'check', config }] } }))['id']
}

t.test('only a target of a gate may pass it by hand', async (t) => {
  const id = await gated([ada.id])
  const passing = [
    ['run.resume', {}],
    ['run.recover', {}],
    ['run.signal', { step_key: 'c', result: { ok: true } }],
  ] as const
  for (const [name, input] of passing) {
    const { message } = await s.refused(name, { id, ...input }, 403, 'forbidden', as(bo))
    t.equal(message, 'Only targets of the interaction can answer it.', name)
  }
  const bulk = (who: Person) =>
    s.ok(
      'run.bulk',
      { action: 'resume', filter: { status: ['suspended'] } },
      {
        ...as(who),
        headers: { 'idempotency-key': `gates-${who.id}` },
      },
    )
  t.match(await bulk(bo), { results: [{ run_id: id, ok: false, error: { code: 'forbidden' } }] })
  t.match(await bulk(ada), { results: [{ run_id: id, ok: true }] })
  t.match(await ended(s, id), {
    status: 'completed',
    result: { c: { verdict: 'fail', overridden_by: ada.id, gate: { status: 'cancelled' } } },
  })
  t.match(
    listOf(await s.ok('run.events', { id, limit: 200 })).find(
      ({ event_type }) => event_type === 'wait.resumed',
    ),
    { payload: { overridden_by: ada.id } },
  )
})

t.test('a principal with a role that is a target may pass the gate', async (t) => {
  const id = await gated(['role:Operator'])
  await s.ok('run.signal', { id, step_key: 'c' }, as(bo))
  t.match(await ended(s, id), { result: { c: { overridden_by: bo.id } } })
})
