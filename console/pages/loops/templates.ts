/** Complete definitions from which a new loop can be created. */
import type { Authored, Trigger } from '../../../protocol/loops/schema.ts'
import { loopsText as text } from './text.ts'
import { browserZone } from './trigger-fields.ts'

/** A template. `definition` returns the members with which the loop is created. */
export interface LoopTemplate {
  readonly id: string
  readonly label: string
  readonly hint: string
  readonly definition: () => Pick<Authored, 'steps' | 'triggers' | 'event'>
}
const steps = (): NonNullable<Authored['steps']> => [
  { id: 'wait', kind: 'sleep', config: { duration: '1s' } },
]
const startedBy = (trigger: Trigger) => () => ({ steps: steps(), triggers: [trigger] })

/** One template for each way to start a loop. Each has a single step that sleeps for 1 s. */
export const loopTemplates: readonly LoopTemplate[] = [
  {
    id: 'schedule',
    label: text.schedule,
    hint: text.scheduleHint,
    definition: () =>
      startedBy({
        kind: 'schedule',
        key: 'morning',
        config: { cron: '0 7 * * *', timezone: browserZone() },
      })(),
  },
  {
    id: 'http',
    label: text.http,
    hint: text.httpHint,
    definition: startedBy({ kind: 'http', key: 'request' }),
  },
  {
    id: 'event',
    label: text.event,
    hint: text.eventHint,
    definition: startedBy({ kind: 'event', key: 'paid', config: { event_type: 'order.paid' } }),
  },
  {
    id: 'manual',
    label: text.manual,
    hint: text.manualHint,
    definition: () => ({ steps: steps() }),
  },
]
