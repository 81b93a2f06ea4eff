/** One view with its follower and its file, wherever it runs: in a node's own thread, or in one of its own. */
import type { Envelope } from '../../protocol/entry.ts'
import { ViewFollower, type ViewJournal } from '../../views/follow.ts'
import type { Logs } from '../../views/files/logs.ts'
import { View } from '../../views/view.ts'

/** A view that is served. */
export interface ServedView {
  /** Answer a question, as `ViewFollower.ask` does. */
  ask(question: Question): Promise<unknown>
  /** The last applied sequence. */
  position(): Promise<number>
  /** Stop following and close the file. */
  stop(): Promise<void>
}
/** A question as it is sent around. */
export interface Question {
  readonly name: string
  readonly project: string
  readonly input: unknown
  readonly fresh?: number
  readonly within?: number
}
/** What a view is told when it starts. */
export interface ViewTerms {
  readonly file: string
  /** Id of the organization. */
  readonly organization: string
  /** Milliseconds for which a worker whose connection was lost is listed as stale. */
  readonly stale: number
}
/** What a view needs of the world. */
export interface ViewPorts extends ViewJournal {
  decode(data: Uint8Array): Promise<Envelope>
  /** The clock and timers of a test; else those of the system. */
  now?(): number
  later?(ms: number, run: () => void): () => void
  /** How many messages it is behind. */
  lag(messages: number): void
  alarm(error: Error): void
}

/** Open a view and begin to follow its journal. @param logs who is told of its commits; they end after it. */
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
