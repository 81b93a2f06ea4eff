/**
 * The client side of a terminal: relays one client socket to the gateway of the environment's
 * worker. If no worker is connected, the worker is started first.
 *
 * Invariants:
 * P1. The first message is `terminal.open`. The terminal ends when the socket closes, and the
 *     socket closes when the terminal ends.
 * P2. Buffered data is bounded by the windows. A client that exceeds its input window is
 *     disconnected. A client that does not acknowledge output pauses the program in the terminal.
 * P3. A terminal ends as soon as its gateway learns that the person who opened it has lost the
 *     permission, also while the worker starts.
 */
import type { Credential, Principal } from '../../protocol/entry.ts'
import type { EnvironmentCommands } from '../../protocol/environments/commands.ts'
import {
  errorBody,
  isRefusal,
  isServiceFault,
  type Refusal,
  refuse,
} from '../../protocol/errors.ts'
import { closeCodes } from '../../protocol/workers/socket.ts'
import {
  ByteWindow,
  bytesIn,
  type FromPerson,
  type TerminalAnswer,
  type ToPerson,
  type TowardsPerson,
  terminalLimits,
} from '../../protocol/workers/terminals.ts'
import { hexOf } from '../http/hex.ts'
import type { World } from '../ports.ts'
import { every, sleep } from '../timing.ts'
import { readMessage } from './messages.ts'

/** The access that an upgrade grants. */
export interface TerminalGrant {
  readonly project: string
  readonly environment_id: string
  readonly principal: Principal
  readonly credential: Credential
  /** Checks the access again. Returns the refusal, or undefined while the access is valid. */
  recheck(): Promise<Refusal | undefined>
  /**
   * Calls `look` whenever the access may have been lost, until the returned function is called.
   */
  watch(look: () => Promise<void>): () => void
  /** Records a use of the credential, so that a console session stays open. */
  used(): void
}
/** The methods of the socket. None is called after the socket has been closed. */
export interface TerminalPipe {
  send(text: string): void
  close(code: number, reason: string): void
}
type Opening = Extract<FromPerson, { readonly type: 'terminal.open' }>

/** Milliseconds between two requests for a terminal while the worker starts. */
const RETRY_MS = 500
/** Maximum number of unanswered requests to a connected worker. */
const MAX_UNANSWERED = 10

export class TerminalConnection {
  readonly #world: World
  readonly #grant: TerminalGrant
  readonly #pipe: TerminalPipe
  readonly #gone: () => void
  readonly #id: string
  readonly #input = new ByteWindow(terminalLimits.input_window)
  readonly #began: number
  #state: 'new' | 'opening' | 'open' | 'closed' = 'new'
  /** Sequence number of the next input. */
  #sent = 0
  /** Sequence number of the next output. */
  #expected = 0
  /** Time of the last input or output. */
  #active: number
  /** Time of the last message from the worker's gateway. */
  #heard: number
  #stop: () => void
  readonly #unwatch: () => void

  /** @param gone called once, when the socket has ended. */
  constructor(world: World, grant: TerminalGrant, pipe: TerminalPipe, gone: () => void) {
    this.#world = world
    this.#grant = grant
    this.#pipe = pipe
    this.#gone = gone
    this.#id = hexOf(world.random(16))
    this.#began = this.#active = this.#heard = world.monotonic()
    this.#stop = world.later(terminalLimits.open, () =>
      this.close(closeCodes.register_timeout, 'no terminal.open in time'),
    )
    this.#unwatch = grant.watch(() => this.#recheck())
  }

  /**
   * Handles an inbound message. A message that is invalid or not allowed in the current state
   * closes the socket.
   */
  receive(text: string): void {
    if (this.#state === 'closed') return
    const message = readMessage(text)
    if (message?.type === 'terminal.open' && this.#state === 'new')
      void this.#open(message).catch((error: unknown) => {
        this.#world.log.error({ event: 'terminal_failed', err: error }, 'terminal failed')
        this.#fail(refuse('internal'))
      })
    else if (message?.type === 'terminal.close') this.close(closeCodes.drained, 'closed')
    else if (message && message.type !== 'terminal.open' && this.#state === 'open')
      this.#pass(message)
    else this.#fail(refuse('bad_request'), closeCodes.malformed)
  }
  #pass(message: Exclude<FromPerson, { readonly type: 'terminal.open' | 'terminal.close' }>): void {
    const { terminals } = this.#world
    this.#active = this.#world.monotonic()
    if (message.type !== 'terminal.input') terminals.toWorker(this.#id, message)
    else if (this.#input.take(bytesIn(message.data))) {
      this.#grant.used()
      terminals.toWorker(this.#id, { ...message, sequence: this.#sent++ })
    } else this.#fail(refuse('rate_limit_exceeded'), closeCodes.too_many_frames)
  }

  async #open({ columns, rows, command }: Opening): Promise<void> {
    this.#state = 'opening'
    this.#stop()
    const { project, environment_id } = this.#grant
    const unlisten = this.#world.terminals.onPerson(this.#id, (message) => this.#relay(message))
    const unbeat = every(this.#world, terminalLimits.beat, () => this.#beat())
    this.#stop = () => {
      unlisten()
      unbeat()
    }
    const answer = await this.#request({
      project,
      environment_id,
      terminal_id: this.#id,
      columns,
      rows,
      ...(command && { command }),
    })
    if (this.#isClosed()) {
      // In the meantime, the worker's gateway may have opened the terminal, which must then be
      // closed.
      if (!isRefusal(answer)) this.#world.terminals.toWorker(this.#id, { type: 'terminal.close' })
      return
    }
    if (isRefusal(answer)) return this.#fail(answer)
    if (!answer.ok) return this.#error(answer.code, answer.message)
    this.#active = this.#heard = this.#world.monotonic()
    this.#send({ type: 'terminal.opened', terminal_id: this.#id })
    this.#state = 'open'
    for (const message of this.#early.splice(0)) this.#relay(message)
    void this.#command('environment.terminal', { terminal_id: this.#id, state: 'opened' })
  }
  /** Messages from the worker that arrived before the answer of its gateway. */
  readonly #early: TowardsPerson[] = []

  /**
   * Requests the terminal. Starts the worker if none is connected. Refuses the request instead if
   * the environment was attached by a worker, because the service cannot start this worker.
   */
  async #request(
    request: Parameters<World['terminals']['open']>[0],
  ): Promise<TerminalAnswer | Refusal> {
    const { project, environment_id: id } = this.#grant
    const until = this.#world.monotonic() + terminalLimits.start
    let unanswered = 0
    let isRequested = false
    for (;;) {
      const answer = await this.#world.terminals.open(request)
      if (answer || this.#isClosed()) return answer ?? refuse('environment_worker_unavailable')
      const standing = await this.#world.ask({ project, kind: 'environment', id }, 'standing', {})
      if (!standing) return refuse('not_found', { resource: 'environment' })
      if (isRefusal(standing)) return standing
      if (standing.worker.state === 'connected') {
        if (++unanswered > MAX_UNANSWERED)
          return refuse(
            'environment_worker_unavailable',
            {},
            'The worker of the environment cannot open terminals.',
          )
      } else if (standing.environment.provider === 'worker')
        return refuse('environment_worker_unavailable', {}, 'The worker is not connected.')
      else if (!isRequested) {
        isRequested = true
        const started = await this.#command('environment.start_worker', {})
        if (isRefusal(started)) return started
      }
      if (this.#isClosed() || this.#world.monotonic() >= until)
        return refuse('environment_worker_unavailable', {}, 'The worker did not start in time.')
      await sleep(this.#world, RETRY_MS)
    }
  }
  #isClosed(): boolean {
    return this.#state === 'closed'
  }

  /**
   * Forwards a message from the worker's gateway to the client. Until the terminal is open, up to
   * 256 messages are queued, and further messages are dropped.
   */
  #relay(message: TowardsPerson): void {
    this.#heard = this.#world.monotonic()
    if (this.#state === 'opening' && this.#early.length < 256) return void this.#early.push(message)
    if (this.#state !== 'open' || message.type === 'beat') return
    if (message.type === 'terminal.ack') this.#input.acknowledge(message.bytes)
    if (message.type === 'terminal.output') this.#active = this.#heard
    if (message.type === 'terminal.output' && message.sequence !== this.#expected++)
      this.#error('service_unavailable', 'Output was lost during transmission.')
    else this.#send(message)
    if (message.type === 'terminal.exit') this.close(closeCodes.drained, 'the program has ended')
  }
  #beat(): void {
    if (this.#state !== 'open') return
    const now = this.#world.monotonic()
    this.#world.terminals.toWorker(this.#id, { type: 'beat' })
    if (now - this.#heard > terminalLimits.silence)
      this.#error('environment_worker_unavailable', 'The worker was lost.')
    else if (now - this.#active > terminalLimits.idle)
      this.#error('conflict', 'The terminal was idle for too long.')
    else if (now - this.#began > terminalLimits.duration)
      this.#error('conflict', 'The terminal reached its maximum duration.')
    else void this.#recheck()
  }
  async #recheck(): Promise<void> {
    const refused = await this.#grant.recheck().catch(() => undefined)
    if (refused && !isServiceFault(refused)) this.#fail(refused, closeCodes.forbidden)
  }

  #command<N extends 'environment.terminal' | 'environment.start_worker'>(
    name: N,
    input: N extends 'environment.terminal'
      ? EnvironmentCommands['environment.terminal']['input']
      : object,
  ) {
    const { project, environment_id: id, principal, credential } = this.#grant
    return this.#world.commandRow({
      project,
      kind: 'environment',
      id,
      command_id: this.#world.newCommandId(),
      name,
      input,
      origin: { at: this.#world.now(), principal, credential },
    })
  }
  #send(message: ToPerson): void {
    if (this.#state !== 'closed') this.#pipe.send(JSON.stringify(message))
  }
  #fail(refusal: Refusal, close: number = closeCodes.internal): void {
    const { code, message } = errorBody(refusal).error
    this.#error(code, message, close)
  }
  #error(code: string, message: string, close: number = closeCodes.internal): void {
    this.#send({ type: 'error', error: { code, message } })
    this.close(close, 'the terminal has ended')
  }
  /** Ends the terminal and closes the socket. */
  close(code: number, reason: string): void {
    if (this.#state === 'closed') return
    this.ended()
    this.#pipe.close(code, reason)
  }
  /** Ends the terminal, because the socket is closed. */
  ended(): void {
    if (this.#state === 'closed') return
    const wasOpen = this.#state === 'open'
    this.#state = 'closed'
    this.#stop()
    this.#unwatch()
    this.#gone()
    if (!wasOpen) return
    this.#world.terminals.toWorker(this.#id, { type: 'terminal.close' })
    void this.#command('environment.terminal', { terminal_id: this.#id, state: 'closed' })
  }
}
