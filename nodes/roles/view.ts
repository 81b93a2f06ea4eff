/**
 * One view with its follower and its file. It runs in the node's main thread or in a separate one.
 */
import type { Envelope } from '../../protocol/entry.ts'
import type { Logs } from '../../views/files/logs.ts'
import { ViewFollower, type ViewJournal } from '../../views/follow.ts'
import { View } from '../../views/view.ts'

/** A running view. */
export interface ServedView {
  /** Answers a query, as `ViewFollower.ask` does. */
  ask(question: Question): Promise<unknown>
  /** Returns the sequence of the last applied journal message. */
  position(): Promise<number>
  /** Stops following and closes the file. */
  stop(): Promise<void>
}
/** A query as it is sent over the bus and to threads. */
export interface Question {
  readonly name: string
  readonly project: string
  readonly input: unknown
  readonly fresh?: number
  readonly within?: number
}
/** Start parameters of a view. */
export interface ViewTerms {
  readonly file: string
  /** Id of the organization. */
  readonly organization: string
  /** Milliseconds for which a worker whose connection was lost is listed as stale. */
  readonly stale: number
}
/** The ports of a view. */
export interface ViewPorts extends ViewJournal {
  decode(data: Uint8Array): Promise<Envelope>
  /** Clock and timers; absent: those of the system. */
  now?(): number
  later?(ms: number, run: () => void): () => void
  /** Reports how many messages the view is behind. */
  lag(messages: number): void
  alarm(error: Error): void
}

/**
 * Opens a view and starts following its journal.
 * @param logs notified of the view's commits; must outlive the view.
 */
export async function serveView(
  { file, organization, stale }: ViewTerms,
  ports: ViewPorts,
  logs: Pick<Logs, 'saved'>,
): Promise<ServedView> {
  const { now, later } = ports
  const view = View.open(file, {
    ...(now && { now }),
    stale,
    organization: () => organization,
    saved: () => logs.saved(file),
  })
  const follower = new ViewFollower(view, ports, {
    ...(later && { later }),
    hooks: {
      lag: (messages) => ports.lag(messages),
      alarm: (error) => ports.alarm(error as Error),
    },
  })
  await follower.start()
  return {
    ask: ({ name, project, input, fresh, within }) =>
      follower.ask(name, project, input, fresh, within),
    position: async () => follower.position(),
    stop: async () => {
      await follower.stop()
      view.close()
    },
  }
}
