/**
 * Loops that trigger each other. One event starts at most as many runs as the operator allows. The
 * loops are then paused, and the reason is recorded.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'

const ALLOWED = 12
const s = await service({ BATON_TRIGGERED_RUNS: String(ALLOWED) })
t.teardown(() => s.stop())

t.test('loops that trigger each other are paused at the limit', async (t) => {
  const loops = await Promise.all(
    ['A', 'B', 'C', 'D'].map((name) =>
      s.ok('loop.create', {
        name,
        steps: [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }],
        triggers: [
          { kind: 'event', key: 'again', config: { event_type: 'run.completed' } },
          { kind: 'event', key: 'go', config: { event_type: 'go' } },
        ],
      }),
    ),
  )
  const runs = async () =>
    (
      await Promise.all(loops.map(({ id }) => s.ok('run.list', { loop_id: id, limit: 200 })))
    ).flatMap((page) => listOf(page))
  let published = 0
  await until(
    async () => {
      const paused = listOf(await s.ok('loop.list', { status: 'paused' }))
      // A new loop may miss an event that is published before its triggers are registered.
      // Therefore, events are published until all loops are paused.
      if (paused.length < loops.length)
        await s.ok('event.publish', { event_type: 'go' }).then(() => published++)
      return paused
    },
    (paused) => paused.length === loops.length,
  )
  const started = (await runs()).length
  t.ok(started >= ALLOWED && started <= ALLOWED * published, `${started} runs`)
  const [first] = listOf(await s.ok('event.list', { event_type: 'loop.auto_paused' }))
  t.match(first, { event: { loop_id: /^loop_/, reason: /Triggers have started 12 runs/ } })
  for (const { id } of loops) {
    const [again] = listOf(await s.ok('loop.triggers', { id }))
    t.match(again, { key: 'again', last_skipped_start: { reason: / → / } })
  }
  const entries = listOf(await s.ok('audit.list', { resource_type: 'loop', limit: 200 }))
  t.match(
    entries.filter((entry) => JSON.stringify(entry).includes('Triggers have started')).length,
    loops.length,
    'one audit entry per loop',
  )
})
