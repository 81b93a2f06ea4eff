/** The timeline of a run as progress: one line for each event, and what of it is worth telling. */
import type { RunEventRecord } from '../../protocol/runs/schema.ts'
import type { Sink } from '../http/respond.ts'

/** What a line says: the cursor of an event, and what is told of it. */
interface Line {
  readonly c: number
  readonly m?: string
}

/** Events that are told; all of them count. */
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
/** What is told of an event: `step completed: review`. */
const messageOf = ({ event_type, step_key }: RunEventRecord): string =>
  `${event_type.replace('.', ' ')}${step_key === undefined ? '' : `: ${step_key}`}`

/** How the timeline is written down for calls. */
export const progressSpelling = {
  name: 'mcp',
  spell: (record: RunEventRecord): string =>
    `${JSON.stringify({ c: record.sequence, ...(told.has(record.event_type) && { m: messageOf(record) }) } satisfies Line)}\n`,
}

/** What is done with what is read. */
interface Reading {
  event(cursor: number, message: string | undefined): void
  /** The gateway asks to be left, with so many milliseconds until the return. */
  farewell(frame: string): void
  /** Nothing follows: the run has ended, or the gateway stops. */
  over(): void
}
/** A reader of that spelling, in the form of a client of a follower: never slow, because it writes nothing itself. */
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
    write(piece) {
      if (closed) return
      for (const line of (typeof piece === 'string' ? piece : Buffer.from(piece).toString()).split(
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
