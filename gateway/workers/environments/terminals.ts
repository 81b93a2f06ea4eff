/**
 * The worker side of terminals: relays messages between the socket of a worker and the gateway of
 * the client (`gateway/terminals/`).
 *
 * Invariants:
 * T1. A terminal belongs to one connection of a worker, and ends when this connection ends.
 * T2. A terminal ends when its worker exceeds the output window, when input is lost, or when the
 *     gateway of the client is silent for `terminalLimits.silence`.
 */
import type { Up } from '../../../protocol/workers/socket.ts'
import {
  ByteWindow,
  bytesIn,
  type TerminalAnswer,
  type TerminalExit,
  type TerminalRequest,
  type TowardsWorker,
  terminalLimits,
} from '../../../protocol/workers/terminals.ts'
import type { World } from '../../ports.ts'
import { every } from '../../timing.ts'
import type { Session } from '../session.ts'

type Frame = Extract<Up, { readonly type: `terminal.${string}` }>

export interface WorkerTerminals {
  /**
   * Offers terminals in the session's environment, if the session has an environment and its worker
   * supports terminals.
   */
  serve(session: Session): void
  /**
   * Handles a frame from a worker. A frame for an unknown terminal is answered with
   * `terminal.close`, unless it reports an exit.
   */
  handle(session: Session, frame: Frame): void
  /** Stops offering terminals for a session whose connection has ended, and ends its terminals. */
  leave(session: Session): void
}
interface Terminal {
  readonly id: string
  readonly session: Session
  readonly output: ByteWindow
  /** Sequence number of the next input. */
  input: number
  /** Time of the last message from the client's gateway. */
  heard: number
  readonly stop: () => void
}

const unavailable: TerminalAnswer = {
  ok: false,
  code: 'environment_worker_unavailable',
  message: 'The worker of the environment was disconnected.',
}
const tooMany: TerminalAnswer = {
  ok: false,
  code: 'rate_limit_exceeded',
  message: `The environment has the maximum of ${terminalLimits.per_environment} terminals.`,
}

/** Creates the worker side of the terminals of a gateway, without open terminals. */
export function openWorkerTerminals(
  world: Pick<World, 'terminals' | 'monotonic' | 'later'>,
): WorkerTerminals {
  const terminals = new Map<string, Terminal>()
  const ofSession = (session: Session) =>
    [...terminals.values()].filter((terminal) => terminal.session === session)

  /** Ends a terminal on both sides. */
  const end = (terminal: Terminal, exit: Omit<TerminalExit, 'type'>): void => {
    if (!forget(terminal)) return
    world.terminals.toPerson(terminal.id, { type: 'terminal.exit', ...exit })
    terminal.session.connection.send({ type: 'terminal.close', terminal_id: terminal.id })
  }
  const forget = ({ id, stop }: Terminal): boolean => {
    stop()
    return terminals.delete(id)
  }

  function open(session: Session, request: TerminalRequest): TerminalAnswer {
    const { terminal_id: id, columns, rows, command } = request
    if (session.closed || session.project !== request.project) return unavailable
    if (ofSession(session).length >= terminalLimits.per_environment) return tooMany
    const unlisten = world.terminals.onWorker(id, (message) => relay(id, message))
    const unbeat = every(world, terminalLimits.beat, () => beat(id))
    terminals.set(id, {
      id,
      session,
      output: new ByteWindow(terminalLimits.output_window),
      input: 0,
      heard: world.monotonic(),
      stop: () => {
        unlisten()
        unbeat()
      },
    })
    session.connection.send({
      type: 'terminal.open',
      terminal_id: id,
      columns,
      rows,
      ...(command && { command: [...command] }),
    })
    return { ok: true }
  }
  function beat(id: string): void {
    const terminal = terminals.get(id)
    if (!terminal) return
    world.terminals.toPerson(id, { type: 'beat' })
    if (world.monotonic() - terminal.heard > terminalLimits.silence)
      end(terminal, { error: 'The connection to the terminal was lost.' })
  }
  /** Forwards a message from the client's gateway to the worker. */
  function relay(terminal_id: string, message: TowardsWorker): void {
    const terminal = terminals.get(terminal_id)
    if (!terminal) return
    terminal.heard = world.monotonic()
    const { connection } = terminal.session
    switch (message.type) {
      case 'beat':
        return
      case 'terminal.input':
        if (message.sequence === terminal.input++)
          connection.send({ type: message.type, terminal_id, data: message.data })
        else end(terminal, { error: 'Input was lost during transmission.' })
        return
      case 'terminal.ack':
        terminal.output.acknowledge(message.bytes)
        return void connection.send({ ...message, terminal_id })
      case 'terminal.resize':
        return void connection.send({ ...message, terminal_id })
      case 'terminal.close':
        forget(terminal)
        return void connection.send({ type: message.type, terminal_id })
    }
  }

  return {
    serve(session) {
      const { environment_id } = session.wants.filters
      if (!session.hasTerminals || environment_id === undefined || session.closed) return
      session.unserve?.()
      session.unserve = world.terminals.serve(environment_id, (request) => open(session, request))
    },
    handle(session, { message_id: _, ...frame }) {
      const { terminal_id, ...message } = frame
      const terminal = terminals.get(terminal_id)
      if (terminal?.session !== session) {
        if (message.type !== 'terminal.exit')
          session.connection.send({ type: 'terminal.close', terminal_id })
        return
      }
      if (message.type === 'terminal.exit') forget(terminal)
      if (message.type === 'terminal.output' && !terminal.output.take(bytesIn(message.data)))
        return end(terminal, { error: 'The worker sent more output than the terminal can take.' })
      world.terminals.toPerson(terminal_id, message)
    },
    leave(session) {
      session.unserve?.()
      session.unserve = undefined
      for (const terminal of ofSession(session))
        end(terminal, { error: 'The worker was disconnected.' })
    },
  }
}
