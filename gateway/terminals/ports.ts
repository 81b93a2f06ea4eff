/** The port of terminals: messages between the gateway of a person and the gateway of a worker. */
import type {
  TerminalAnswer,
  TerminalRequest,
  TowardsPerson,
  TowardsWorker,
} from '../../protocol/workers/terminals.ts'

/**
 * Relays messages of terminals between gateways. Messages may be lost, but messages from the same
 * sender stay in order.
 */
export interface TerminalRelay {
  /**
   * Answers requests to open a terminal of an environment, until the returned function is called.
   */
  serve(environment_id: string, open: (request: TerminalRequest) => TerminalAnswer): () => void
  /** Requests a terminal. Returns undefined when no gateway has a worker of the environment. */
  open(request: TerminalRequest): Promise<TerminalAnswer | undefined>
  toWorker(terminal_id: string, message: TowardsWorker): void
  toPerson(terminal_id: string, message: TowardsPerson): void
  /**
   * Calls `on` with the messages of a terminal to its worker (`onWorker`) or to its person
   * (`onPerson`), until the returned function is called.
   */
  onWorker(terminal_id: string, on: (message: TowardsWorker) => void): () => void
  onPerson(terminal_id: string, on: (message: TowardsPerson) => void): () => void
}
