/**
 * Supports tests of actors without I/O: given a history, a command is decided, and the test asserts
 * the outcome. `when` returns the next scene. Scenes are immutable, so a test is a chain of
 * commands that may branch. If a decision returns its next state, `when` checks that it equals the
 * state folded from the events. The time is constant unless a cause sets it; ids are numbered
 * consecutively: `job_1`, `wait_1`.
 */
import { isDeepStrictEqual } from 'node:util'
import {
  type AnyActor,
  type Cause,
  type Decided,
  type Effect,
  evolve,
  fold,
  type Tell,
} from '../../actors/actor.ts'
import type { Event } from '../../protocol/entry.ts'
import type { Refusal } from '../../protocol/errors.ts'
import { prefixes } from '../../protocol/ids.ts'

/** Start time of every test: 2026-01-01T00:00:00.000Z. */
export const START = 1_767_225_600_000

/** An actor with a history. `S` is the type of the state as the test uses it. */
export interface Scene<S> {
  readonly state: S
  readonly history: readonly Event[]
  readonly at: number
  /**
   * Decides a command. Fields that `cause` lacks have the values of the previous command's cause.
   */
  when(name: string, input?: unknown, cause?: Partial<Cause>): Outcome<S>
  /** Answers a query of the actor from the state. */
  ask(name: string, input?: unknown): unknown
  deadline(): number | undefined
}
/** The result of a command. A refused command does not change the state. */
export interface Outcome<S> extends Scene<S> {
  readonly events: readonly (Event & Readonly<Record<string, unknown>>)[]
  readonly tells: readonly Tell[]
  readonly soft: readonly Event[]
  readonly effects: readonly Effect[]
  /**
   * The reply of the decision. If it is a function, the value that it returns for the state after
   * the command.
   */
  readonly reply: unknown
  readonly refused?: Refusal
}

function agree(name: string, next: unknown, after: unknown): void {
  if (!isDeepStrictEqual(next, after))
    throw new Error(
      `${name} decided ${JSON.stringify(next)}, but its events give ${JSON.stringify(after)}`,
    )
}
/**
 * Freezes a value deeply. Events are shared with views and live feeds, so `evolve` must never
 * change them.
 */
function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const member of Object.values(value)) freeze(member)
}
export function given<S = never>(actor: AnyActor, ...events: Event[]): Scene<S> {
  const counts: Record<string, number> = {}
  const next = (name: string): string => {
    counts[name] = (counts[name] ?? 0) + 1
    return `${name}_${counts[name]}`
  }
  const base: Cause = {
    id: 'command_1',
    at: START,
    principal: { type: 'user', id: 'user_1' },
    credential: { type: 'api_key', id: 'key_1', name: 'ci' },
    shard: 0,
    self: { project: 'prj_1', kind: actor.kind, id: `${actor.kind}_1` },
    mint: (prefix) => next(prefixes[prefix]),
    secret: () => next('secret'),
  }
  const scene = (state: S, history: readonly Event[], last: Cause): Scene<S> => ({
    state,
    history,
    at: last.at,
    when(name, input = {}, change = {}) {
      const cause = { ...last, ...change }
      const arm = actor.decide[name]
      if (!arm) throw new Error(`${actor.kind} does not decide ${name}`)
      const decision = arm(state as never, input as never, cause)
      if ('refused' in decision)
        return {
          ...scene(state, history, cause),
          events: [],
          tells: [],
          soft: [],
          effects: [],
          reply: undefined,
          refused: decision,
        }
      const { events, tells = [], soft = [], reply, next } = decision as Decided<Event, unknown>
      freeze(events)
      const after = [...soft, ...events].reduce(
        (before: unknown, event) => evolve(actor, before, event, cause.at),
        next === undefined && events.length + soft.length > 0 ? structuredClone(state) : state,
      ) as S
      if (next !== undefined) agree(name, next, after)
      return {
        ...scene(after, [...history, ...events], cause),
        events: events as Outcome<S>['events'],
        tells,
        soft,
        effects: events.flatMap(
          (event) => actor.react?.[event.type]?.(event as never, cause.self) ?? [],
        ),
        reply:
          typeof reply === 'function'
            ? (reply as (state: never) => unknown)(after as never)
            : reply,
      }
    },
    ask: (name, input = {}) => actor.ask?.[name]?.(state as never, input as never, last.at),
    deadline: () => actor.deadline?.(state as never),
  })
  return scene(fold(actor, events, START) as S, events, base)
}

export const typesOf = ({ events }: { readonly events: readonly Event[] }): string[] =>
  events.map(({ type }) => type)
