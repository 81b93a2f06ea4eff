/**
 * The interface of an actor: three pure tables. `decide` answers a command with events, `evolve`
 * applies an event to the state, and `react` returns the effects of an event. None of them uses
 * promises, the clock, randomness or I/O: time, new ids and secrets arrive as arguments.
 *
 * Invariants:
 * A1. `decide` and `ask` never change the state. `evolve` owns the state that it receives and may
 *     change it in place, because its caller does not read the old state again. A decision that
 *     applies its own events therefore first copies the parts of the state that they change.
 * A2. State is plain JSON. Applying the events after a snapshot to the snapshot yields the same
 *     state as applying all events.
 * A3. `tells` go to actors of the same shard and are decided in the same commit. Everything else is
 *     an `Effect`, attempted after the commit, at least once, under a stable id.
 * A4. `soft` events, such as a renewed lease or a heartbeat, change the state in memory only.
 *     Losing them must be harmless.
 */
import type { CommandsOf, Input, Reply, Row, Table } from '../protocol/contract.ts'
import type { Address, Event, Kind, Origin } from '../protocol/entry.ts'
import type { HostRequest } from '../protocol/environments/commands.ts'
import type { Refusal } from '../protocol/errors.ts'
import type { Prefix } from '../protocol/ids.ts'
import type { ActorReplies } from '../protocol/queries/commands.ts'
import type { OwnerKind, OwnerQueries, OwnerQuery } from '../protocol/queries/owners.ts'

/** The origin of a command, the actor that decides it, and the source of new ids and secrets. */
export interface Cause extends Origin {
  /** Id of the command. */
  readonly id: string
  /** The deciding actor. */
  readonly self: Address
  /** Index of the deciding actor's shard, for the ids of queues in the same shard. */
  readonly shard: number
  /**
   * Returns a new id with the same slot as the id of the deciding actor, so that an actor with the
   * new id is in the same shard. If the deciding actor is a queue, the slot is random.
   */
  mint(prefix: Prefix): string
  /** Returns a random secret of 100 bits, as letters and digits. */
  secret(): string
}

/**
 * A command to an actor of the same shard, decided in the same commit. A refusal is ignored, so
 * send only commands that the receiver accepts.
 */
export interface Tell {
  readonly to: { readonly kind: Kind; readonly id: string; readonly project?: string }
  readonly name: string
  readonly input: unknown
}

/** A side effect that the shard host performs after the commit. */
export type Effect =
  /**
   * A command to an actor of any shard. Commands to one receiver are sent in order, so that the
   * receiver can deduplicate them.
   */
  | { readonly tell: Tell }
  /** Offers the waiting jobs of a queue to gateways or executors. */
  | { readonly offer: { readonly queue: string } }
  /**
   * A message to the gateway of a worker session, or to an executor. If `spec` is present, the host
   * first reads the parameters of the job from the job's owner.
   */
  | { readonly push: Push }
  /**
   * Notifies people by e-mail or webhook, if notifications are configured. The actor's record is
   * read (`get`) when the notification is sent.
   */
  | { readonly notify: { readonly about: 'requested' | 'changes_requested' | 'submitted' } }
  /** Deletes the values with these names, which are no longer referenced, from the object store. */
  | { readonly erase: readonly string[] }
  /**
   * Requests work from one host of the environment's place. While the environment has no place, any
   * host of its provider may receive the request. A request may be lost, so the actor repeats it
   * until a host claims the work or the operation ends.
   */
  | {
      readonly host: {
        readonly provider: string
        readonly place?: string
        readonly request: HostRequest
      }
    }
  /** Writes a warning to the node's log, usually at most once a minute for each `about`. */
  | { readonly warn: Warning }
export interface Warning {
  /** Id of the record that the warning is about. */
  readonly about: string
  /** Stable name for alerts, in snake_case. */
  readonly event: string
  readonly message: string
  readonly fields: Readonly<Record<string, string | number>>
}
export interface Push {
  readonly gateway: string
  readonly message: { readonly type: string } & Readonly<Record<string, unknown>>
  readonly spec?: {
    readonly kind: Kind
    readonly id: string
    readonly ask: string
    readonly input: unknown
  }
}

export interface Decided<E, R> {
  readonly events: readonly E[]
  /**
   * The reply, or a function that returns the reply. The function is called with the actor's own
   * state after the command and its tells have been decided.
   */
  readonly reply: R | ((state: never) => R)
  readonly tells?: readonly Tell[]
  readonly soft?: readonly E[]
  /**
   * The state after the events, if `decide` computed it anyway. It equals the result of `evolve`
   * over the events. Not allowed together with `soft`.
   */
  readonly next?: unknown
}
export type Decision<E, R> = Decided<E, R> | Refusal

type On<E extends Event, N> = Extract<E, { type: N }>
/** Commands that no client sends: input and reply by command name. */
type Internal = Readonly<Record<string, { readonly input: unknown; readonly reply: unknown }>>

/**
 * One kind of actor: `S` is its state, `E` its events, `T` the API table, `K` its kind, and `I` its
 * internal commands. `Extra` contains the fields that the gateway adds to a row's input after
 * lookups, by row name.
 */
export interface Actor<
  S,
  E extends Event,
  T extends Table,
  K extends Kind,
  I extends Internal = Record<never, never>,
  Extra = Record<never, never>,
> {
  readonly kind: K
  readonly initial: () => S
  readonly decide: {
    readonly [N in keyof CommandsOf<T, K>]: CommandsOf<T, K>[N] extends infer R extends Row
      ? (
          state: S,
          input: Input<R> & (N extends keyof Extra ? Extra[N] : unknown),
          cause: Cause,
        ) => Decision<E, N extends keyof ActorReplies ? ActorReplies[N] : Reply<R>>
      : never
  } & {
    readonly [N in keyof I]: (
      state: S,
      input: I[N]['input'],
      cause: Cause,
    ) => Decision<E, I[N]['reply']>
  }
  /**
   * For each conditional command, a function that returns the record that the command changes, in
   * the form in which clients read it, or undefined if the record does not exist.
   */
  readonly records?: {
    readonly [N in keyof CommandsOf<T, K>]?: (
      state: S,
      input: Input<CommandsOf<T, K>[N] & Row>,
    ) => object | undefined
  }
  readonly evolve: { readonly [N in E['type']]: (state: S, event: On<E, N>, at: number) => S }
  readonly react?: {
    readonly [N in E['type']]?: (event: On<E, N>, self: Address) => readonly Effect[]
  }
  /** Queries that the owner answers from the committed state, by name. */
  readonly ask?: K extends OwnerKind
    ? {
        readonly [N in keyof OwnerQueries[K]]: (
          state: S,
          input: OwnerQuery<K, N>['input'],
          at: number,
        ) => OwnerQuery<K, N>['reply']
      }
    : never
  /**
   * Returns the time, in Unix milliseconds, at which the actor next needs the internal command
   * `wake`. The time may be too early, but never too late. Returns undefined if no wake is needed.
   */
  readonly deadline?: (state: S) => number | undefined
  /**
   * Adapts the state for a new owner, for instance by adding fields that older snapshots lack.
   * Changes made by soft events are lost in a takeover, so every lease restarts with its full
   * duration.
   */
  readonly recover?: (state: S, at: number) => S
  /**
   * Whether a message that may already have been sent is obsolete. A new owner does not send
   * obsolete messages again.
   */
  readonly isObsolete?: (state: S, push: Push) => boolean
  /** Whether the actor has ended and can be evicted from memory immediately. */
  readonly ended?: (state: S) => boolean
  /**
   * Whether an ended actor will not change again, apart from rare late messages, and is needed only
   * to answer repeated commands. The host then does not store its state but reads its entries from
   * the journal. Once that part of the journal has been deleted, the actor no longer exists.
   */
  readonly final?: (state: S) => boolean
  /**
   * Present if the state alone makes every command idempotent. No command ids or replies are then
   * stored for this kind.
   */
  readonly naturallyIdempotent?: true
  /**
   * If present, a reply that `decide` returned as a function (see `Decided`) is not stored, because
   * it may be large. When the command is repeated, this function computes the reply instead.
   */
  readonly replayReply?: (state: S) => unknown
}

/** The interface of an actor without its type parameters, as the shard host uses it. */
export interface AnyActor {
  readonly kind: Kind
  readonly initial: () => unknown
  readonly decide: Readonly<
    Record<string, (state: never, input: never, cause: Cause) => Decision<Event, unknown>>
  >
  readonly records?: Readonly<Record<string, (state: never, input: never) => object | undefined>>
  readonly evolve: Readonly<Record<string, (state: never, event: never, at: number) => unknown>>
  readonly react?: Readonly<Record<string, (event: never, self: Address) => readonly Effect[]>>
  readonly ask?: Readonly<Record<string, (state: never, input: never, at: number) => unknown>>
  readonly deadline?: (state: never) => number | undefined
  readonly recover?: (state: never, at: number) => unknown
  readonly isObsolete?: (state: never, push: Push) => boolean
  readonly ended?: (state: never) => boolean
  readonly final?: (state: never) => boolean
  readonly naturallyIdempotent?: true
  readonly replayReply?: (state: never) => unknown
}

/**
 * Returns the actor with the type that the shard host uses. Hosts look up the handlers in `decide`,
 * `evolve` and `ask` by name, which the types of an actor cannot express.
 */
export const defineActor = <
  S,
  E extends Event,
  T extends Table,
  K extends Kind,
  I extends Internal,
  Extra,
>(
  actor: Actor<S, E, T, K, I, Extra>,
): AnyActor => actor as unknown as AnyActor

/**
 * Applies one event.
 * @throws Error if the actor has no handler for the event's type.
 */
export function evolve(actor: AnyActor, state: unknown, event: Event, at: number): unknown {
  const arm = actor.evolve[event.type]
  if (!arm) throw new Error(`${actor.kind} has no evolve arm for ${event.type}`)
  return arm(state as never, event as never, at)
}
/** Applies events in order to a state, by default the initial one. */
export const fold = (
  actor: AnyActor,
  events: readonly Event[],
  at = 0,
  from: unknown = actor.initial(),
): unknown => events.reduce((state, event) => evolve(actor, state, event, at), from)
