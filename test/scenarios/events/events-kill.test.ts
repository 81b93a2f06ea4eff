/**
 * Runs wait for events while the shard node is killed repeatedly, even while waits are being opened
 * and events are in flight. Every open wait receives its event, and every event is published once.
 */
import t from 'tap'
import { listOf, until } from '../support/given.ts'
import { persistent, portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'

const RUNS = 12
t.setTimeout(90_000)
t.test('waits and events survive kills of the shard node', { timeout: 90_000 }, async (t) => {
  const it = await processes({ ...hasty, BATON_SHARDS: '3' })
  t.teardown(() => it.stop())
  const [port = 0] = await portsFor(1)
  let owner = await it.node('shards-0', 'shards')
  await it.node('front', 'gateway,views', port)
  const call = persistent(it, port)
  const P = '/projects/default'
  const replace = async (n: number): Promise<void> => {
    await owner.kill()
    t.comment(`shards-${n - 1} is dead`)
    owner = await it.node(`shards-${n}`, 'shards')
  }
  const spec = {
    steps: ['a', 'b'].map((id) => ({
      id,
      kind: 'wait_for_event',
      config: { event_type: `step.${id}`, match: { of: '${{ input.of }}' } },
    })),
    output: { a: '${{ steps.a.output.event.n }}', b: '${{ steps.b.output.event.n }}' },
  }
  const starts = Array.from({ length: RUNS }, (_, of) =>
    call('POST', `${P}/runs`, { spec, input: { of } }, { 'idempotency-key': `start-${of}` }),
  )
  await Promise.all([Promise.race(starts).then(() => replace(1)), ...starts])
  const runs = (await Promise.all(starts)).map(({ body }) => String(body['id']))
  t.equal(new Set(runs).size, RUNS)

  const opened = (step: string) =>
    Promise.all(
      runs.map((id) =>
        until(
          () => call('GET', `/runs/${id}/steps`),
          ({ body }) =>
            listOf(body).some(
              ({ step_key, status }) => step_key === step && status === 'suspended',
            ),
        ),
      ),
    )
  const publish = (step: string) =>
    Promise.all(
      runs.map((_, of) =>
        call(
          'POST',
          `${P}/events`,
          { event_type: `step.${step}`, event: { of, n: `${step}${of}` } },
          { 'idempotency-key': `${step}-${of}` },
        ),
      ),
    )
  await opened('a')
  const [first] = await Promise.all([publish('a'), replace(2)])
  await opened('b')
  const [second] = await Promise.all([publish('b'), replace(3)])
  t.ok([...first, ...second].every(({ status }) => status === 202))

  const done = await Promise.all(
    runs.map((id) =>
      until(
        () => call('GET', `${P}/runs/${id}`),
        ({ body }) => body['status'] !== 'suspended' && body['status'] !== 'running',
      ),
    ),
  )
  t.strictSame(
    done.map(({ body }) => [body['status'], body['result']]),
    runs.map((_, of) => ['completed', { a: `a${of}`, b: `b${of}` }]),
  )
  const { body: listed } = await call('GET', `${P}/events?source_kind=custom&limit=200`)
  t.equal(listOf(listed).length, 2 * RUNS, 'each event once')
  t.ok(listOf(listed).every(({ resumed_waits }) => resumed_waits === 1))
})
