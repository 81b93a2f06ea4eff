/**
 * The timeline of a run as progress: one line per event, and the message for those events that
 * clients are shown.
 */
import type { RunEventRecord } from '../../protocol/runs/schema.ts'
import type { Sink } from '../http/respond.ts'

/** The content of a line: the cursor of an event, and its message if it has one. */
interface Line {
  readonly c: number
  readonly m?: string
}

/** Events with a message. All other events only count as progress. */
const told: ReadonlySet<string> = new Set([
  'run.started',
  'run.resumed',
  'step.started',
  'step.completed',
  'step.failed',
  'step.retried',
  'step.skipped',
  'wait.opened',
  'action.retried',
  'interaction.requested',
  'check.passed',
  'check.failed',
])
/** The message of an event, such as `step completed: review`. */
const messageOf = ({ event_type, step_key }: RunEventRecord): string =>
  `${event_type.replace('.', ' ')}${step_key === undefined ? '' : `: ${step_key}`}`

/** The format of the timeline for calls. */
export const progressSpelling = {
  name: 'mcp',
  spell(record: RunEventRecord): string {
    const line: Line = {
      c: record.sequence,
      ...(told.has(record.event_type) && { m: messageOf(record) }),
    }
    return `${JSON.stringify(line)}\n`
  },
}

/** The handlers of what is read. */
interface Reading {
  event(cursor: number, message: string | undefined): void
  /**
   * The gateway stops; the frame contains the milliseconds after which the client should reconnect.
   */
  farewell(frame: string): void
  /** Nothing follows: the run has ended, or the gateway stops. */
  over(): void
}
/**
 * A reader of that format, in the form of a follower's client. It is never slow, because it writes
 * nothing itself.
 */
export function reader({ event, farewell, over }: Reading): Sink {
  const closers: (() => void)[] = []
  let closed = false
  return {
    full: false,
    get closed() {
      return closed
    },
    onDrain: () => {},
    onClose: (run) => void closers.push(run),
    write(chunk) {
      if (closed) return
      for (const line of (typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()).split(
        '\n',
      )) {
        if (line.startsWith('{')) {
          const { c, m } = JSON.parse(line) as Line
          event(c, m)
        } else if (line.startsWith('retry: ')) farewell(`${line}\n\n`)
      }
    },
    end() {
      if (closed) return
      closed = true
      for (const close of closers) close()
      over()
    },
  }
}
