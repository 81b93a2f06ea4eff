/**
 * The queue of tells from a shard to one receiver. The receiver decides the tells in order. Tells
 * that wait while others are in flight are sent together next, so that a receiver of many tells
 * decides them in few commits.
 *
 * Invariants:
 * N1. A tell is sent again until its decision is confirmed. It may be answered with `not_owner`
 *     although later tells of the same message were decided. Its decision has then changed nothing,
 *     so the receiver may drop the repeat as outdated.
 * N2. An outbox ends when it is empty, and is never restarted.
 */
import type { Address, Command } from '../../../protocol/entry.ts'
import { partitionOf, shardOf, subjects } from '../../../protocol/subjects.ts'
import type { HostDeps, ShardAnswer } from '../deps.ts'
import type { Planned } from './effects.ts'

/**
 * Maximum number of tells in one message, and the number of characters after which no more are
 * added.
 */
const MAX_TELLS = 64
const MAX_BYTES = 512 * 1024
/**
 * Milliseconds to wait for an answer. The time is short, because a message or its answer may be
 * lost, and the checkpoint waits for the answer.
 */
const ANSWER_TIMEOUT_MS = 3000

interface Waiting {
  readonly command: Command
  readonly size: number
  readonly done: () => void
}

export class Outbox {
  readonly #deps: HostDeps
  readonly #to: Address
  readonly #stopped: () => boolean
  readonly #over: () => void
  #waiting: Waiting[] = []

  /**
   * @param stopped returns true when the shard is given up; nothing more is sent then.
   * @param over called when no tells are left.
   */
  constructor(deps: HostDeps, to: Address, stopped: () => boolean, over: () => void) {
    this.#deps = deps
    this.#to = to
    this.#stopped = stopped
    this.#over = over
    // Sending is deferred, so that all tells of one commit to this receiver are sent together.
    queueMicrotask(() => void this.#run())
  }
  /** Adds a tell. Resolves when the tell was decided, or sending was abandoned. */
  add({ id, at, from, effect, size }: Planned): Promise<void> {
    if (!('tell' in effect)) return Promise.resolve()
    const { name, input } = effect.tell
    const command: Command = {
      ...this.#to,
      command_id: id,
      name,
      input,
      origin: {
        at,
        principal: { type: 'system', id: 'system' },
        credential: { type: 'internal', id: from.id },
      },
    }
    return new Promise((done) => this.#waiting.push({ command, size, done }))
  }
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const some = this.#next()
      await this.#send(some.map(({ command }) => command)).catch((error) =>
        this.#deps.log.error(
          { event: 'outbox_send_failed', err: error, to: this.#to.id },
          'outbox send failed',
        ),
      )
      for (const { done } of some) done()
    }
    this.#over()
  }
  #next(): Waiting[] {
    let count = 0
    for (
      let room = MAX_BYTES;
      count < this.#waiting.length && count < MAX_TELLS && room > 0;
      count++
    )
      room -= this.#waiting[count]?.size ?? 0
    return this.#waiting.splice(0, count)
  }
  async #send(commands: readonly Command[]): Promise<void> {
    const { bus, clock, log, partitions, shards } = this.#deps
    const shard = shardOf(this.#to.kind, this.#to.id, shards)
    if (shard === undefined) return
    const subject = subjects.shard(partitionOf(this.#to.project, partitions), shard)
    let left = commands
    let most = MAX_TELLS
    let attempt = 0
    while (left.length > 0 && !this.#stopped()) {
      const some = left.slice(0, most)
      const answer = await bus.request(
        subject,
        some.length === 1
          ? { type: 'command', command: some[0] }
          : { type: 'commands', commands: some },
        ANSWER_TIMEOUT_MS,
      )
      const answers =
        typeof answer === 'object'
          ? ((some.length === 1 ? [answer.answer] : answer.answer) as readonly ShardAnswer[])
          : []
      const open = answers.findIndex((decided) => 'not_owner' in decided)
      const decided = open < 0 ? answers.length : open
      left = left.slice(decided)
      if (decided > 0) {
        attempt = 0
        most = MAX_TELLS
        continue
      }
      // The message may exceed the maximum size, so fewer tells are sent together.
      if (answer === 'timeout') most = Math.ceil(some.length / 8)
      if (attempt === 20)
        log.warn(
          { event: 'outbox_send_delayed', subject, command: left[0]?.name },
          'outbox send delayed; retrying',
        )
      await new Promise<void>((again) =>
        clock.later(Math.min(1000, 10 * 2 ** Math.min(attempt++, 7)), again),
      )
    }
  }
}
