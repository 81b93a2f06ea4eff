/**
 * Decides a batch of commands, and collects the entries of one envelope from the decisions. The
 * tells of a command (commands to other actors of the shard) are decided right after it, in the
 * same envelope. One envelope is one group commit (`../shard.ts`).
 *
 * Invariants:
 * B1. While a shard is served, the state of actors changes only in batches, except that leases are
 *     extended after a pause in writes (`write-gate.ts`) and after a snapshot is read. When the
 *     envelope cannot be appended, all actor instances are dropped and read again from the stored
 *     state.
 * B2. The index of an event in its envelope is fixed when the event is decided. A later entry of
 *     the same actor can therefore refer to it in `prev`.
 */
import { type Decided, evolve, type Tell } from '../../../actors/actor.ts'
import { unmetCondition } from '../../../actors/conditional.ts'
import type { MaybePromise } from '../../../gateway/maybe-promise.ts'
import type { Address, Command, Entry, Event, Kind, Origin } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { shardOf } from '../../../protocol/subjects.ts'
import { DecisionContext } from '../decision-context.ts'
import { type HostDeps, notOwner, type ShardAnswer } from '../deps.ts'
import { Unreadable } from '../memory/actor-cache.ts'
import {
  type ActorInstance,
  alreadyTaken,
  answerToRepeat,
  mustWait,
  noteCommand,
  noteUnknown,
  rememberedReply,
} from '../memory/actor-instance.ts'
import {
  type EnvelopeFormat,
  type EnvelopeWriter,
  envelopeWriter,
  NEWEST_FORMAT,
} from '../memory/codec.ts'

/** Maximum nesting depth of tells within one commit. */
const MAX_DEPTH = 32
/**
 * Maximum number of events that one command may cause, including those of its tells. The limit
 * keeps an envelope below 1000 events, because a cursor has three digits for the index of an event.
 */
const MAX_EVENTS_PER_COMMAND = 500
/** Number of characters of JSON, or number of events, at which a batch is full. */
const FULL_FROM = { bytes: 512 * 1024, events: 1000 - MAX_EVENTS_PER_COMMAND } as const

export type Decide = { readonly reply: unknown } | Refusal
/** A command, or a tell, that an actor decides. */
type Deciding = Pick<Command, 'command_id' | 'name' | 'input' | 'fingerprint' | 'if_match'>
/** Returns the outcome of a decision, as a label for metrics: `ok`, or the code of the refusal. */
export const outcomeOf = (decided: Decide): string =>
  'refused' in decided ? decided.refused : 'ok'

export class Batch {
  readonly entries: Entry[] = []
  /** The actor instance of each entry. */
  readonly instances: ActorInstance[] = []
  readonly format: EnvelopeFormat
  readonly writer: EnvelopeWriter
  /** The length of each entry's JSON in characters. */
  readonly sizes: number[] = []
  /** Actor instances whose state changed, by stored or by soft events. */
  readonly touched = new Set<ActorInstance>()
  events = 0
  bytes = 0
  /**
   * Whether a command has changed actor instances and then caused an exception. If so, the
   * instances no longer agree with the journal.
   */
  torn = false
  /** The number of decisions whose events were applied, or began to be applied. */
  #applied = 0
  /** The values of the counters before the command that is being decided. */
  readonly #before = { entries: 0, events: 0, applied: 0 }
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
    this.format = deps.format?.() ?? NEWEST_FORMAT
    this.writer = envelopeWriter(this.format)
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
   * Decides one command and its tells, synchronously if the actors are in memory. The previous
   * command must have been decided. An exception in an actor is answered with `internal`; see
   * `torn`. An unknown command, which a newer release may have sent, is answered with `not_owner`.
   * Its sender then repeats it until the shard has an owner that runs that release. If the unknown
   * command is an effect, later effects from the same source to the same actor are also answered
   * with `not_owner`, because effects are applied in order.
   * @param known the instance of the actor, if it is in memory.
   * @throws Unreadable when the snapshot of an actor cannot be read.
   * @throws ForeignSnapshot when another release wrote the snapshot of the command's actor in an
   *   unknown format.
   */
  decide(command: Command, known?: ActorInstance): MaybePromise<ShardAnswer> {
    const instance = known ?? this.#instance(command)
    return instance instanceof Promise
      ? instance.then((read) => this.#decide(read, command))
      : this.#decide(instance, command)
  }

  #decide(instance: ActorInstance, command: Command): MaybePromise<ShardAnswer> {
    const known = answerToRepeat(instance, command)
    if (known) return known
    if (alreadyTaken(instance, command.command_id)) return { reply: undefined }
    if (!Object.hasOwn(instance.actor.decide, command.name)) {
      const { kind, id, name, command_id } = command
      this.#deps.log.warn({ event: 'command_unknown', kind, id, command: name }, 'unknown command')
      noteUnknown(instance, command_id)
      return notOwner
    }
    if (mustWait(instance, command.command_id)) return notOwner
    this.#before.entries = this.entries.length
    this.#before.events = this.events
    this.#before.applied = this.#applied
    const origin = { ...command.origin, at: this.#now }
    try {
      const decided = this.#decideOne(instance, command, origin, 0)
      return decided instanceof Promise
        ? decided
            .then((late) => this.#complete(late))
            .catch((error: unknown) => this.#handleException(instance, command, error))
        : this.#complete(decided)
    } catch (error) {
      return this.#handleException(instance, command, error)
    }
  }
  #complete(decided: Decide): ShardAnswer {
    for (let i = this.#before.entries; i < this.entries.length; i++) {
      const size = this.writer.add(this.entries[i] as Entry)
      this.sizes.push(size)
      this.bytes += size
    }
    return decided
  }
  /** Handles an exception in an actor: removes the entries of the command from the batch. */
  #handleException(
    { key }: ActorInstance,
    { kind, id, name }: Command,
    error: unknown,
  ): ShardAnswer {
    if (error instanceof Unreadable) throw error
    const { entries, events, applied } = this.#before
    const torn = this.#applied > applied
    this.torn ||= torn
    this.entries.length = entries
    this.instances.length = entries
    this.events = events
    const { quarantine, clock, log } = this.#deps
    const rest = torn && name === 'wake' ? quarantine?.add(key, clock.elapsed()) : undefined
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

  #decideOne(
    instance: ActorInstance,
    command: Deciding,
    origin: Origin,
    depth: number,
  ): MaybePromise<Decide> {
    if (depth > MAX_DEPTH)
      throw new Error(`commands between actors are nested deeper than ${MAX_DEPTH}`)
    const arm = instance.actor.decide[command.name]
    if (!arm) throw new Error(`${instance.kind} has no command ${command.name}`)
    const decision = arm(
      instance.state as never,
      command.input as never,
      new DecisionContext(instance, command.command_id, origin, this.#shard, this.#deps.random),
    )
    if (isRefusal(decision)) return decision
    const unmet = unmetCondition(instance.actor, instance.state, command)
    if (unmet) return unmet
    const { soft, tells, next } = decision as Decided<Event, unknown>
    if (this.events + decision.events.length - this.#before.events > MAX_EVENTS_PER_COMMAND)
      throw new Error(`one command caused more than ${MAX_EVENTS_PER_COMMAND} events`)
    if (soft || decision.events.length > 0) {
      this.#applied++
      this.touched.add(instance)
    }
    if (soft)
      for (const event of soft)
        instance.state = evolve(instance.actor, instance.state, event, origin.at)
    const entry =
      decision.events.length > 0
        ? this.#addEntry(instance, command, origin, decision.events, next)
        : undefined
    const pendingTells = tells && this.#tells(instance, tells, 0, command.command_id, origin, depth)
    return pendingTells
      ? pendingTells.then(() =>
          this.#reply(instance, command, origin, decision.reply, entry, depth),
        )
      : this.#reply(instance, command, origin, decision.reply, entry, depth)
  }
  /** Computes the reply after all tells were decided, and remembers it. */
  #reply(
    instance: ActorInstance,
    command: Deciding,
    origin: Origin,
    replied: unknown,
    entry: { reply?: unknown } | undefined,
    depth: number,
  ): Decide {
    const computed = typeof replied === 'function'
    const reply = computed
      ? (replied as (state: never) => unknown)(instance.state as never)
      : replied
    if (entry && depth === 0) {
      const keep = rememberedReply(instance, reply, computed)
      noteCommand(instance, command.command_id, keep, origin.at, command.fingerprint)
      if (keep !== undefined) entry.reply = keep
    }
    return { reply }
  }

  /** Decides the tells of a command in order, beginning with the tell at `first`. */
  #tells(
    from: ActorInstance,
    tells: readonly Tell[],
    first: number,
    id: string,
    origin: Origin,
    depth: number,
  ): Promise<void> | undefined {
    for (let i = first; i < tells.length; i++) {
      const pendingTells = this.#tell(from, tells[i] as Tell, `${id}/${i}`, origin, depth)
      if (pendingTells)
        return pendingTells.then(() => this.#tells(from, tells, i + 1, id, origin, depth))
    }
    return undefined
  }
  #tell(
    from: ActorInstance,
    { to, name, input }: Tell,
    id: string,
    origin: Origin,
    depth: number,
  ): Promise<void> | undefined {
    const address: Address = {
      project: to.project ?? from.project,
      kind: to.kind,
      id: to.id,
    }
    if (shardOf(address.kind, address.id, this.#deps.shards) !== this.#shard)
      throw new Error(
        `${from.kind} sends a command to ${address.kind} ${address.id} of another shard`,
      )
    const command: Deciding = { command_id: id, name, input }
    const instance = this.#instance(address)
    const answer =
      instance instanceof Promise
        ? instance.then((read) => this.#decideOne(read, command, origin, depth + 1))
        : this.#decideOne(instance, command, origin, depth + 1)
    if (answer instanceof Promise)
      return answer.then((decided) => this.#logRefusal(from, to.kind, name, decided))
    this.#logRefusal(from, to.kind, name, answer)
    return undefined
  }
  #logRefusal(from: ActorInstance, to: Kind, name: string, answer: Decide): void {
    if (isRefusal(answer))
      this.#deps.log.debug(
        { event: 'actor_command_refused', from: from.kind, to, name, code: answer.refused },
        'actor command refused',
      )
  }

  #addEntry(
    instance: ActorInstance,
    { command_id: id, name, fingerprint }: Deciding,
    origin: Origin,
    events: readonly Event[],
    next: unknown,
  ): { reply?: unknown } {
    if (next !== undefined) instance.state = next
    else
      for (const event of events)
        instance.state = evolve(instance.actor, instance.state, event, origin.at)
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
