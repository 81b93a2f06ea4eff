/** Labels of the states, trigger kinds and concurrency policies of loops. */
import type { Loop, Trigger } from '../../../protocol/loops/schema.ts'
import type { Tone } from '../../design/states.tsx'
import { loopsText as text } from './text.ts'

const statuses: Readonly<Record<string, readonly [string, Tone]>> = {
  active: [text.active, 'good'],
  paused: [text.paused, 'warn'],
  draft: [text.draft, 'neutral'],
}
/** Returns the label and the tone of a status. */
export const statusOf = (status: string): readonly [string, Tone] =>
  statuses[status] ?? [status, 'neutral']

/** Labels of the kinds of triggers. */
export const kindWords: Readonly<Record<Trigger['kind'], string>> = {
  http: text.kindHttp,
  schedule: text.kindSchedule,
  event: text.kindEvent,
  manual: text.kindManual,
}
/** Labels of the concurrency policies: what happens at a start while another run is active. */
export const policyWords: Readonly<Record<NonNullable<Loop['concurrency']>, string>> = {
  allow: text.allow,
  queue: text.queue,
  skip: text.skip,
  replace: text.replace,
}
