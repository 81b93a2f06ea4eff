/**
 * Decides a batch of commands, and collects the entries of one envelope from the decisions. The
 * tells of a command (commands to other actors of the shard) are decided right after it, in the
 * same envelope. One envelope is one group commit (`../shard.ts`).
 *
 * Invariants:
 * B1. While a shard is served, the state of actors changes only in batches, except that leases are
 *     extended after a pause of writes (`write-gate.ts`) and after a snapshot is read. When the
 *     envelope cannot be appended, all actor instances are dropped and read again from the stored
 *     state.
 * B2. The index of an event in its envelope is fixed when the event is decided. A later entry of
 *     the same actor can therefore refer to it in `prev`.
 */
import { type Decided, evolve, type Tell } from '../../../actors/actor.ts'
import type { Address, Command, Entry, Event, Origin } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { shardOf } from '../../../protocol/subjects.ts'
import { DecisionContext } from '../decision-context.ts'
import { type HostDeps, notOwner, type ShardAnswer } from '../deps.ts'
import { Unreadable } from '../memory/actor-cache.ts'
import { type ActorInstance, alreadyTaken, kept, note, repeated } from '../memory/actor-instance.ts'
import { encodeEntry } from '../memory/codec.ts'

/** Maximum nesting depth of tells within one commit. */
const DEPTH = 32
/**
 * Maximum number of events that one command may cause, including its tells. It keeps an envelope
 * below 1000 events, because a cursor has three digits for the index of an event.
 */
const EVENTS_PER_COMMAND = 500
/** Number of bytes and of events at which a batch is full. */
const FULL_FROM = { bytes: 512 * 1024, events: 1000 - EVENTS_PER_COMMAND } as const

export type Decide = { readonly reply: unknown } | Refusal
/** The outcome of a decision, as a label for metrics. */
export const outcomeOf = (decided: Decide): string =>
  'refused' in decided ? decided.refused : 'ok'

export class Batch {
  readonly entries: Entry[] = []
  /** The actor instance of each entry. */
  readonly instances: ActorInstance[] = []
  readonly parts: string[] = []
  /** Actor instances whose state changed, by stored or by soft events. */
  readonly touched = new Set<ActorInstance>()
  events = 0
  bytes = 0
  /**
   * Whether a command threw after it had changed actor instances, which then no longer agree with
   * the journal.
   */
  torn = false
  /** The number of decisions whose events were applied, or began to be applied. */
  #applied = 0
  readonly #deps: HostDeps
  readonly #instance: (address: Address) => ActorInstance | Promise<ActorInstance>
  readonly #shard: number
  readonly #now: number

  constructor(
    deps: HostDeps,
    shard: number,
    now: number,
    instance: (address: Address) => ActorInstance | Promise<ActorInstance>,
  ) {
    this.#deps = deps
    this.#instance = instance
    this.#shard = shard
    this.#now = now
  }

  /** Whether the batch accepts no more commands. */
  get full(): boolean {
    return this.torn || this.bytes >= FULL_FROM.bytes || this.events >= FULL_FROM.events
  }

  /**
   * Decides one command and its tells. An exception in an actor is answered with `internal`; see
   * `torn`. An unknown command, which a newer release may have sent, is answered with `not_owner`.
   * Its sender then repeats it until the shard has an owner of that release.
   * @throws Unreadable when the snapshot of an actor cannot be read.
   * @throws ForeignSnapshot when another release wrote the snapshot of the command's actor in an
   *   unknown format.
   */
  async decide(command: Command): Promise<ShardAnswer> {
    const found = this.#instance(command)
    const instance = found instanceof Promise ? await found : found
    const known = instance.seen?.get(command.command_id)
    if (known) {
      if (
        known.fingerprint !== undefined &&
        command.fingerprint !== undefined &&
        known.fingerprint !== command.fingerprint
      ) {
        return refuse(
          'idempotency_key_conflict',
          undefined,
          'This idempotency key was already used with a different request.',
        )
      }
      return { reply: repeated(instance, known) }
    }
    if (alreadyTaken(instance, command.command_id)) return { reply: undefined }
    const { kind, id, name } = command
    if (!Object.hasOwn(instance.actor.decide, name)) {
      this.#deps.log.warn({ event: 'command_unknown', kind, id, command: name }, 'unknown command')
      return notOwner
    }
    const mark = { entries: this.entries.length, events: this.events, applied: this.#applied }
    const origin = { ...command.origin, at: this.#now }
    try {
      const decided = await this.#one(instance, command, origin, mark, 0)
      for (let i = mark.entries; i < this.entries.length; i++) {
        const part = encodeEntry(this.entries[i] as Entry)
        this.parts.push(part)
        this.bytes += part.length
      }
      return decided
    } catch (error) {
      if (error instanceof Unreadable) throw error
      const torn = this.#applied > mark.applied
      this.torn ||= torn
      this.entries.length = mark.entries
      this.instances.length = mark.entries
      this.events = mark.events
      const { quarantine, clock, log } = this.#deps
      const rest =
        torn && name === 'wake' ? quarantine?.add(instance.key, clock.elapsed()) : undefined
      log.error(
        {
          event: rest === undefined ? 'actor_decision_failed' : 'actor_quarantined',
          err: error,
          kind,
          id,
          command: name,
          ...(rest !== undefined && { rest }),
        },
        rest === undefined ? 'actor decision failed' : 'actor wake-up failed; actor quarantined',
      )
      return refuse('internal')
    }
  }

  async #one(
    instance: ActorInstance,
    command: { command_id: string; name: string; input: unknown; fingerprint?: string },
    origin: Origin,
    mark: { events: number },
    depth: number,
  ): Promise<Decide> {
    if (depth > DEPTH) throw new Error(`commands between actors are nested deeper than ${DEPTH}`)
    const arm = instance.actor.decide[command.name]
    if (!arm) throw new Error(`${instance.kind} has no command ${command.name}`)
    const decision = arm(
      instance.state as never,
      command.input as never,
      new DecisionContext(instance, command.command_id, origin, this.#shard, this.#deps.random),
    )
    if (isRefusal(decision)) return decision
    const { soft, tells, next } = decision as Decided<Event, unknown>
    if (soft || decision.events.length > 0) {
      this.#applied++
      this.touched.add(instance)
    }
    if (soft)
      for (const event of soft)
        instance.state = evolve(instance.actor, instance.state, event, origin.at)
    const entry =
      decision.events.length > 0
        ? this.#enter(instance, command, origin, decision.events, next)
        : undefined
    if (this.events - mark.events > EVENTS_PER_COMMAND)
      throw new Error(`one command caused more than ${EVENTS_PER_COMMAND} events`)
    if (tells)
      for (let i = 0; i < tells.length; i++)
        await this.#tell(
          instance,
          tells[i] as Tell,
          `${command.command_id}/${i}`,
          origin,
          mark,
          depth,
        )
    const computed = typeof decision.reply === 'function'
    const reply = computed
      ? (decision.reply as (state: never) => unknown)(instance.state as never)
      : decision.reply
    if (entry && depth === 0) {
      const keep = kept(instance, reply, computed)
      note(instance, command.command_id, keep, origin.at, command.fingerprint)
      if (keep !== undefined) entry.reply = keep
    }
    return { reply }
  }

  async #tell(
    from: ActorInstance,
    tell: Tell,
    id: string,
    origin: Origin,
    mark: { events: number },
    depth: number,
  ): Promise<void> {
    const address: Address = {
      project: tell.to.project ?? from.project,
      kind: tell.to.kind,
      id: tell.to.id,
    }
    if (shardOf(address.kind, address.id, this.#deps.shards) !== this.#shard)
      throw new Error(
        `${from.kind} sends a command to ${address.kind} ${address.id} of another shard`,
      )
    const found = this.#instance(address)
    const instance = found instanceof Promise ? await found : found
    const answer = await this.#one(
      instance,
      { command_id: id, name: tell.name, input: tell.input },
      origin,
      mark,
      depth + 1,
    )
    if (isRefusal(answer))
      this.#deps.log.debug(
        {
          event: 'actor_command_refused',
          from: from.kind,
          to: address.kind,
          name: tell.name,
          code: answer.refused,
        },
        'actor command refused',
      )
  }

  #enter(
    instance: ActorInstance,
    command: { command_id: string; name: string; fingerprint?: string },
    origin: Origin,
    events: readonly Event[],
    next: unknown,
  ): { reply?: unknown } {
    if (next !== undefined) instance.state = next
    else
      for (const event of events)
        instance.state = evolve(instance.actor, instance.state, event, origin.at)
    const { command_id: id, name, fingerprint } = command
    const entry: Entry & { reply?: unknown } = {
      project: instance.project,
      kind: instance.kind,
      id: instance.id,
      command: fingerprint === undefined ? { id, name } : { id, name, fingerprint },
      origin,
      events,
      prev: instance.prev,
    }
    this.entries.push(entry)
    this.instances.push(instance)
    this.events += events.length
    instance.prev = -this.events
    return entry
  }
}
