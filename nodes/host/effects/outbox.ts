/**
 * The queue of tells from a shard to one receiver. The receiver decides the tells in order. Tells
 * that wait while others are in flight are sent together next, so that a receiver of many tells
 * decides them in few commits.
 *
 * Invariants:
 * N1. A tell is sent again until its decision is confirmed. A tell may be answered with `not_owner`
 *     although later tells of the same message were decided. Such a tell was decided in a batch
 *     that changed nothing, while the receiver's lease was stale. It is therefore harmless if the
 *     receiver drops the repeat as outdated.
 * N2. An outbox ends when it is empty, and is never restarted.
 */
import type { Effect } from '../../../actors/actor.ts'
import type { Address, Command } from '../../../protocol/entry.ts'
import { partitionOf, shardOf, subjects } from '../../../protocol/subjects.ts'
import type { HostDeps, ShardAnswer } from '../deps.ts'
import type { LocalShard } from '../local-shards.ts'
import type { Planned } from './effects.ts'

/** Maximum number of tells in one message. */
const MAX_TELLS = 64
/** Number of characters of a message after which no more tells are added. */
const MAX_LENGTH = 512 * 1024
/**
 * Milliseconds to wait for an answer. The time is short, because a message or its answer may be
 * lost, and the checkpoint waits for the answer.
 */
const ANSWER_TIMEOUT_MS = 3000

interface OutboxCallbacks {
  /** Whether the shard was given up. If so, nothing more is sent. */
  isStopped(): boolean
  /** Called when a tell was decided, or when sending it was abandoned. */
  done(planned: Planned): void
  /** Called when no tells are left. */
  over(): void
}

export class Outbox {
  readonly #deps: HostDeps
  readonly #to: Address
  readonly #callbacks: OutboxCallbacks
  readonly #waiting: Planned[] = []

  constructor(deps: HostDeps, to: Address, callbacks: OutboxCallbacks) {
    this.#deps = deps
    this.#to = to
    this.#callbacks = callbacks
    // Sending is deferred, so that all tells of one commit to this receiver are sent together.
    queueMicrotask(() => void this.#run())
  }
  /** Adds a tell to the queue. */
  add(planned: Planned): void {
    this.#waiting.push(planned)
  }
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const some = this.#next()
      await this.#send(some.map((planned) => this.#command(planned))).catch((error) =>
        this.#deps.log.error(
          { event: 'outbox_send_failed', err: error, to: this.#to.id },
          'outbox send failed',
        ),
      )
      for (const planned of some) this.#callbacks.done(planned)
    }
    this.#callbacks.over()
  }
  #next(): Planned[] {
    let count = 0
    for (
      let room = MAX_LENGTH;
      count < this.#waiting.length && count < MAX_TELLS && room > 0;
      count++
    )
      room -= this.#waiting[count]?.size ?? 0
    return this.#waiting.splice(0, count)
  }
  #command({ id, at, from, effect }: Planned): Command {
    const { project, kind, id: to } = this.#to
    const { name, input } = (effect as Extract<Effect, { readonly tell: unknown }>).tell
    return {
      project,
      kind,
      id: to,
      command_id: id,
      name,
      input,
      origin: {
        at,
        principal: { type: 'system', id: 'system' },
        credential: { type: 'internal', id: from.id },
      },
    }
  }
  async #send(commands: readonly Command[]): Promise<void> {
    const { clock, log, partitions, shards } = this.#deps
    const shard = shardOf(this.#to.kind, this.#to.id, shards)
    if (shard === undefined) return
    const partition = partitionOf(this.#to.project, partitions)
    let left = commands
    let most = MAX_TELLS
    let attempt = 0
    while (left.length > 0 && !this.#callbacks.isStopped()) {
      const some = left.slice(0, most)
      const answers = await this.#attempt(partition, shard, some)
      const open = answers.findIndex((decided) => 'not_owner' in decided)
      const decided = open < 0 ? answers.length : open
      left = left.slice(decided)
      if (decided > 0) {
        attempt = 0
        most = MAX_TELLS
        continue
      }
      // The message may have been too large, so the next one contains fewer tells.
      if (answers === timeout) most = Math.ceil(some.length / 8)
      if (attempt === 20)
        log.warn(
          { event: 'outbox_send_delayed', shard: `${partition}.${shard}`, command: left[0]?.name },
          'outbox send delayed; retrying',
        )
      await new Promise<void>((again) =>
        clock.later(Math.min(1000, 10 * 2 ** Math.min(attempt++, 7)), again),
      )
    }
  }
  /**
   * Makes one attempt to send commands. Returns the answers; an empty list if the shard did not
   * respond.
   */
  async #attempt(
    partition: number,
    shard: number,
    commands: readonly Command[],
  ): Promise<readonly ShardAnswer[]> {
    const here = this.#deps.local?.find(partition, shard)
    if (here) return receiveAll(here, commands)
    const [only] = commands
    const answer = await this.#deps.bus.request(
      subjects.shard(partition, shard),
      commands.length === 1 ? { type: 'command', command: only } : { type: 'commands', commands },
      ANSWER_TIMEOUT_MS,
    )
    if (typeof answer === 'object')
      return (commands.length === 1 ? [answer.answer] : answer.answer) as readonly ShardAnswer[]
    return answer === 'timeout' ? timeout : []
  }
}
/**
 * The result of `#attempt` for a message that was not answered in time, recognized by reference.
 */
const timeout: readonly ShardAnswer[] = []

/** Passes commands to a shard together, so that they are decided in order (W4). */
const receiveAll = (
  shard: LocalShard,
  commands: readonly Command[],
): Promise<readonly ShardAnswer[]> =>
  new Promise((done) => {
    const answers: ShardAnswer[] = []
    let open = commands.length
    commands.forEach((command, i) => {
      shard.receive({ type: 'command', command }, (answer) => {
        answers[i] = answer
        if (--open === 0) done(answers)
      })
    })
  })
