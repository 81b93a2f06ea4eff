/**
 * Decides whether a shard may append to the journal. While appends are not allowed, commands are
 * refused before they are decided, and the service's own activity (timers, offers, effects) waits.
 * Reads are still answered, unless the state of the shard could not be read.
 *
 * Invariants:
 * W1. Nothing is decided while the gate is closed, so memory equals the journal, apart from soft
 *     events.
 * W2. The gate never refuses the command of an effect. It answers `not_owner` instead, so that the
 *     sender repeats the command until it is decided.
 * W3. After `latch`, a shard appends no entries until it is taken over again.
 * W4. Commands of effects that arrived together are all decided or all rejected. A batch is decided
 *     or rejected as a whole. When the gate opens, the commands of effects that still wait are
 *     rejected. If they were not, a later command could be decided after an earlier one from the
 *     same sender was rejected, and the repeat of the earlier one would be dropped as outdated.
 * W5. Neither time during which the gate is closed nor a step of the system clock shortens leases.
 *     When the gate opens, and after a step, leases get their full duration.
 */
import type { Command } from '../../../protocol/entry.ts'
import { refuse } from '../../../protocol/errors.ts'
import { notOwner, type ShardAnswer, type WriteStop } from '../deps.ts'
import { type ActorInstance, isEffectId } from '../memory/actor-instance.ts'
import type { ShardContext } from '../shard-context.ts'

/** Milliseconds between two checks of a closed gate. */
export const GATE_CHECK_MS = 1000
/** Milliseconds between two attempts to read a journal that lacks entries. */
const DAMAGE_CHECK_MS = 30_000
/** Seconds after which a client may repeat a refused command. */
const RETRY_AFTER_S = 5

interface GateCallbacks {
  /** Whether the shard is served. If it is not, the gate is not checked again. */
  isOpen(): boolean
  /** Gives up the shard, so that it is taken over again. */
  lose(reason: string): void
  /**
   * Called for every actor in memory after its leases were extended, because they have new
   * deadlines.
   */
  note(instance: ActorInstance): void
  /** Rejects the waiting commands of effects (W4). */
  rejectEffects(): void
}

export class WriteGate {
  readonly #context: ShardContext
  readonly #callbacks: GateCallbacks
  #latched: WriteStop | undefined
  #unreadable = false
  #wasClosed = false
  /** Why the commands of the current batch are refused; undefined when they are decided. */
  #stop: WriteStop | undefined
  #cancel: (() => void) | undefined

  constructor(context: ShardContext, callbacks: GateCallbacks) {
    this.#context = context
    this.#callbacks = callbacks
  }
  /** Returns why appends are refused now; undefined when they are allowed. */
  closed(): WriteStop | undefined {
    const { deps, partition } = this.#context
    const stop = this.#latched ?? deps.stopped?.(partition)
    if (stop) this.#wasClosed = true
    return stop
  }
  /** Whether the state could not be read, so that queries are not answered either. */
  get unreadable(): boolean {
    return this.#unreadable
  }
  get latched(): boolean {
    return this.#latched !== undefined
  }
  /**
   * Closes the gate until the shard is taken over again. Called by a takeover that is not allowed
   * to write, could not append its fence, or found that the journal lacks entries. Reports a
   * damaged journal to the node.
   * @param unreadable whether the state could not be read either.
   */
  latch(stop: WriteStop, unreadable = false): void {
    const { deps, partition, name } = this.#context
    this.#latched = stop
    this.#unreadable = unreadable
    if (stop.code === 'journal_damaged') deps.damaged?.(partition, stop.reason)
    deps.log.error(
      { event: 'shard_writes_stopped', shard: name, code: stop.code, reason: stop.reason },
      'shard writes stopped',
    )
  }
  /**
   * Begins a batch, while no append is in flight, and sets its time. When the gate has opened since
   * the last batch, waiting commands of effects are rejected (W4), and leases get their full
   * duration (W5).
   */
  begin(): void {
    const isClockSet = this.#context.time.advance()
    this.#stop = this.closed()
    if (this.#stop) return
    if (this.#wasClosed) this.#callbacks.rejectEffects()
    if (this.#wasClosed || isClockSet) this.#restartLeases()
    this.#wasClosed = false
  }
  /**
   * Returns the answer to a refused command of the current batch, or undefined when the command may
   * be decided.
   */
  refusal({ command_id }: Command): ShardAnswer | undefined {
    if (!this.#stop) return undefined
    return isEffectId(command_id) ? notOwner : refusalOf(this.#stop)
  }
  /**
   * While the gate is latched, tries periodically to make the shard writable again: by another
   * takeover if the journal is damaged, otherwise by appending a fence.
   */
  watch(): void {
    const latched = this.#latched
    if (!latched) return
    const damaged = latched.code === 'journal_damaged'
    const { deps, name } = this.#context
    this.#cancel = deps.clock.later(damaged ? DAMAGE_CHECK_MS : GATE_CHECK_MS, () => {
      if (damaged) this.#callbacks.lose('the damaged journal is checked again')
      else
        void this.#probe()
          .catch((error: unknown) =>
            deps.log.debug(
              { event: 'journal_query_failed', err: error, shard: name },
              'journal query failed; retrying',
            ),
          )
          .then(() => {
            if (this.#callbacks.isOpen()) this.watch()
          })
    })
  }
  stop(): void {
    this.#cancel?.()
  }
  /**
   * Tries to append a fence. If that succeeds, or if another owner has appended an envelope, the
   * shard is taken over again.
   */
  async #probe(): Promise<void> {
    const { deps, partition, shard, name } = this.#context
    const { epoch, sequence } = this.#context.position
    if (deps.stopped?.(partition)) return
    const id = `${deps.node}-${name}-${epoch}-probe-${[...deps.random.bytes(6)].join('')}`
    const outcome = await deps.journal.append(
      partition,
      shard,
      fenceEnvelope(epoch, sequence),
      sequence,
      id,
    )
    if (outcome === 'conflict' || typeof outcome === 'object')
      this.#callbacks.lose('the journal accepts entries again')
  }
  #restartLeases(): void {
    const { instances, deps } = this.#context
    const now = deps.clock.now()
    for (const instance of instances.all()) {
      if (instance.actor.recover)
        instance.state = instance.actor.recover(instance.state as never, now)
      this.#callbacks.note(instance)
    }
  }
}

export const refusalOf = ({ code }: WriteStop) => refuse(code, { retry_after: RETRY_AFTER_S })
/** Returns an envelope without entries, which marks the epoch of a new owner. */
export const fenceEnvelope = (epoch: number, prev: number): Uint8Array =>
  new TextEncoder().encode(JSON.stringify({ v: 1, epoch, prev, entries: [] }))
