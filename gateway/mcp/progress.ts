/**
 * The format in which a call follows the timeline of its run: one JSON line per event, with a
 * message for certain types of events. Frames for clients are created in `follow.ts`.
 */
import type { RunEventRecord } from '../../protocol/runs/schema.ts'
import type { Sink } from '../http/respond.ts'

/** The content of a line: the cursor `c` of an event, and its message `m` if it has one. */
interface Line {
  readonly c: number
  readonly m?: string
}

/** The types of events that have a message. Other events only increase the progress number. */
const withMessage: ReadonlySet<string> = new Set([
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
/** Returns the message of an event, such as `step completed: review`. */
const messageOf = ({ event_type, step_key }: RunEventRecord): string =>
  `${event_type.replace('.', ' ')}${step_key === undefined ? '' : `: ${step_key}`}`

/** The format of the timeline for tool calls. */
export const progressSpelling = {
  name: 'mcp',
  spell(record: RunEventRecord): string {
    const line: Line = {
      c: record.sequence,
      ...(withMessage.has(record.event_type) && { m: messageOf(record) }),
    }
    return `${JSON.stringify(line)}\n`
  },
}

/** The callbacks of the reader. */
interface Reading {
  event(cursor: number, message: string | undefined): void
  /**
   * Called when the gateway stops. The frame contains the time in milliseconds after which the
   * client should reconnect.
   */
  farewell(frame: string): void
  /** Called when the run has ended, the gateway is stopping, or the sink was ended. */
  over(): void
}
/**
 * Creates a sink that parses the lines of the format and calls the callbacks. It is never full,
 * because it buffers nothing.
 */
export function createProgressReader({ event, farewell, over }: Reading): Sink {
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
