/** The status of a run, step or job as a badge. */
import { Badge, type Tone } from '../../design/states.tsx'
import { runsText as text } from './text.ts'

const tones: Readonly<Record<string, Tone>> = {
  running: 'info',
  claimed: 'info',
  suspended: 'warn',
  completed: 'good',
  failed: 'bad',
}
/** Returns the tone of a status. */
export const toneOf = (status: string): Tone => tones[status] ?? 'neutral'

const labels: Readonly<Record<string, string>> = {
  queued: text.queued,
  pending: text.pending,
  running: text.running,
  claimed: text.claimed,
  suspended: text.suspended,
  completed: text.completed,
  failed: text.failed,
  cancelled: text.cancelled,
  skipped: text.skipped,
}
/** Returns the label of a status. */
export const statusLabel = (status: string): string => labels[status] ?? status

/** Shows the label of a status in its tone. */
export const StatusBadge = ({ status }: { readonly status: string }) => (
  <Badge tone={toneOf(status)}>{statusLabel(status)}</Badge>
)
