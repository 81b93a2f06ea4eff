/**
 * Chains of loops that start each other through events: what a run stores about its chain, and how
 * a loop is paused.
 */
import t from 'tap'
import { MAX_CHAIN_DEPTH } from '../../../protocol/events/sources.ts'
import { ORGANIZATION, Yard } from './yard.ts'

const made = (more: Record<string, unknown>): Yard => {
  const yard = new Yard()
  yard.create(more)
  return yard
}

t.test('a run started by an event stores the chain of loops that led to it', async (t) => {
  const yard = made({ triggers: [{ kind: 'event', key: 'e', config: { event_type: 'order.*' } }] })
  const chains = () => [...yard.runs.values()].map(({ opening }) => opening['chain'])
  yard.fire('e', 'sevt_1')
  yard.fire('e', 'sevt_2', 2, { root: 'sevt_0', loops: ['loop_a', 'loop_b'] })
  t.strictSame(chains(), [
    { root: 'sevt_1', loops: [yard.id] },
    { root: 'sevt_0', loops: ['loop_a', 'loop_b', yard.id] },
  ])
})

t.test(
  'a loop whose triggers would start too many runs is paused once, with the reason',
  async (t) => {
    const yard = made({ triggers: [{ kind: 'event', key: 'e', config: { event_type: 'run.*' } }] })
    const trigger_id = yard.state.trigger_ids['e'] ?? ''
    const stop = (id: string, depth = 3) =>
      yard.send('loop.stop', {
        trigger_ids: [trigger_id],
        reason: 'Too many.',
        source: {
          id,
          event_type: 'run.completed',
          source_kind: 'loop_run',
          source_id: 'run_1',
          event: {},
          meta: { run_id: 'run_1' },
          depth,
          chain: { root: 'sevt_0', loops: [] },
          occurred_at: '',
        },
      })
    stop('sevt_1')
    t.match(yard.events, [
      { type: 'trigger.skipped', trigger_id, reason: 'Too many.', source_event_id: 'sevt_1' },
      { type: 'loop.auto_paused', run_id: 'run_1', reason: 'Too many.', depth: 4 },
      { type: 'triggers.watched', triggers: [] },
    ])
    const paused = yard.events.find(({ type }) => type === 'loop.auto_paused')
    t.match(yard.actor.react?.['loop.auto_paused']?.(paused as never, { project: 'p' } as never), [
      {
        tell: {
          input: {
            event: { run_id: 'run_1', loop_id: yard.id, reason: 'Too many.' },
            depth: 4,
            chain: undefined,
          },
        },
      },
    ])
    t.equal(yard.state.record?.status, 'paused')
    t.match(paused, { updated_at: yard.state.record?.updated_at })
    t.equal(yard.state.skips?.[trigger_id]?.last.reason, 'Too many.')
    stop('sevt_2')
    t.strictSame(yard.events, [], 'a paused loop has no active trigger')
    yard.send('loop.update', { organization: ORGANIZATION, status: 'active' })
    stop('sevt_3', MAX_CHAIN_DEPTH)
    t.match(
      yard.events.find(({ type }) => type === 'loop.auto_paused'),
      { depth: MAX_CHAIN_DEPTH },
      'loops that listen to pauses still run',
    )
  },
)
