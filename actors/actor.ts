/**
 * What an actor is: three pure tables. `decide` answers a command with events, `evolve` applies an event to the state,
 * `react` says what the world must do because of it. No promises, clock, randomness or I/O: time, new ids and secrets
 * arrive in `cause`.
 *
 * Invariants:
 * A1. `decide` and `ask` never change the state; `evolve` owns the state it is given and may change it in place, because
 *     its caller never looks at the old one again.
 * A2. State is plain JSON: `evolve` over the events after a snapshot gives what `evolve` over all events gives.
 * A3. `tells` go to actors of the same shard and are decided in the same commit; everything else is an `Effect`, performed
 *     after the commit, at least once, under a stable id.
 * A4. `soft` events change the state in memory only; losing them must be harmless (a renewed lease, a sign of life).
 */
import type { CommandsOf, Input, Reply, Row, Table } from '../protocol/contract.ts'
import type { Address, Event, Kind, Origin } from '../protocol/entry.ts'
import type { Prefix } from '../protocol/ids.ts'
import type { Refusal } from '../protocol/errors.ts'

/** Why and when a command is decided, and where new names come from. */
export interface Cause extends Origin {
  /** Id of the command. */
  readonly id: string
  /** The deciding actor. */
  readonly self: Address
  /** Number of shards, to address a queue of the own shard. */
  readonly shard: number
  /** A new id in the slot of the deciding actor: it lives in the same shard. */
  mint(prefix: Prefix): string
  /** An unguessable text: 128 bits, letters and digits. */
  secret(): string
}

/** A command to an actor of the same shard, decided in the same commit. Its refusal is ignored: tell only what the receiver accepts. */
export interface Tell {
  readonly to: { readonly kind: Kind; readonly id: string; readonly project?: string }
  readonly name: string
  readonly input: unknown
}

/** What the world does after the commit. */
export type Effect =
  /** A command to an actor anywhere; performed in order per receiver, so that the receiver can drop repeats. */
  | { readonly tell: Tell }
  /** There is work in this queue: match it with workers. */
  | { readonly offer: { readonly queue: string } }
  /** A message to the gateway that holds a worker session; with `spec`, the job's parameters are read from its owner first. */
  | { readonly push: Push }
  /** People have to do with the actor now: tell them outside the service, if anybody was set up to. The actor is asked for its record (`get`) when that happens. */
  | { readonly notify: { readonly about: 'requested' | 'changes_requested' | 'submitted' } }
  /** Values of the object store, by name, that nobody needs any more. */
  | { readonly erase: readonly string[] }
  /** The operator should see it in the log of this node; seldom more than once a minute for the same `about`. */
  | { readonly warn: Warning }
export interface Warning {
  /** What it is about: an id. */
  readonly about: string
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
  /** The answer; as a function it is computed from the own state after the whole commit was decided, tells included. */
  readonly reply: R | ((state: never) => R)
  readonly tells?: readonly Tell[]
  readonly soft?: readonly E[]
  /** The state after the events, when deciding had to compute it anyway: what `evolve` over them gives. Not together with `soft`. */
  readonly next?: unknown
}
export type Decision<E, R> = Decided<E, R> | Refusal

type On<E extends Event, N> = Extract<E, { type: N }>
/** Commands that no client sends: by name, their input and reply. */
type Internal = Readonly<Record<string, { readonly input: unknown; readonly reply: unknown }>>

/**
 * One kind of actor. `Rows` are the API rows it decides, `I` its internal commands, `Extra` what the edge adds to a row's
 * input after looking things up (by row name).
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
        ) => Decision<E, Reply<R>>
      : never
  } & {
    readonly [N in keyof I]: (
      state: S,
      input: I[N]['input'],
      cause: Cause,
    ) => Decision<E, I[N]['reply']>
  }
  readonly evolve: { readonly [N in E['type']]: (state: S, event: On<E, N>, at: number) => S }
  readonly react?: {
    readonly [N in E['type']]?: (event: On<E, N>, self: Address) => readonly Effect[]
  }
  /** Reads of the owner's committed state, by name. */
  readonly ask?: Readonly<Record<string, (state: S, input: never, at: number) => unknown>>
  /** When the actor wants the internal command `wake` next, in Unix milliseconds; a lower bound is enough. */
  readonly deadline?: (state: S) => number | undefined
  /** The state as a new owner takes it over: soft knowledge is gone, so leases get one full duration of grace. */
  readonly recover?: (state: S, at: number) => S
  /** Whether a message that may have been sent before says nothing any more: a new owner does not repeat it. */
  readonly isObsolete?: (state: S, push: Push) => boolean
  /** Whether the actor can leave memory at once: it has ended. */
  readonly ended?: (state: S) => boolean
  /** Every command is idempotent by the state itself, so no command ids and replies are kept for this kind. */
  readonly naturallyIdempotent?: true
  /** What a repeat of a command is answered with, when its reply was a function: computed anew, so that no copies of a large state are kept. */
  readonly replayReply?: (state: S) => unknown
}

/** The shape of an actor whatever its types: what the shard host runs. */
export interface AnyActor {
  readonly kind: Kind
  readonly initial: () => unknown
  readonly decide: Readonly<
    Record<string, (state: never, input: never, cause: Cause) => Decision<Event, unknown>>
  >
  readonly evolve: Readonly<Record<string, (state: never, event: never, at: number) => unknown>>
  readonly react?: Readonly<Record<string, (event: never, self: Address) => readonly Effect[]>>
  readonly ask?: Readonly<Record<string, (state: never, input: never, at: number) => unknown>>
  readonly deadline?: (state: never) => number | undefined
  readonly recover?: (state: never, at: number) => unknown
  readonly isObsolete?: (state: never, push: Push) => boolean
  readonly ended?: (state: never) => boolean
  readonly naturallyIdempotent?: true
  readonly replayReply?: (state: never) => unknown
}

/** Apply one event. */
export function evolve(actor: AnyActor, state: unknown, event: Event, at: number): unknown {
  const arm = actor.evolve[event.type]
  if (!arm) throw new Error(`${actor.kind} has no evolve arm for ${event.type}`)
  return arm(state as never, event as never, at)
}
/** Apply events in order to a state, by default the initial one. */
export const fold = (
  actor: AnyActor,
  events: readonly Event[],
  at = 0,
  from: unknown = actor.initial(),
): unknown => events.reduce((state, event) => evolve(actor, state, event, at), from)
