/**
 * Runs one actor under manual control: tests send commands and read replies. Each `send` also
 * asserts that the decision does not mutate the state. Events and state pass through JSON, as in a
 * shard.
 */
import assert from 'node:assert'
import {
  type AnyActor,
  type Cause,
  type Decided,
  type Effect,
  evolve,
} from '../../../actors/actor.ts'
import type { Address, Event, Origin } from '../../../protocol/entry.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { makeId, slotOf } from '../../../protocol/ids.ts'

export const START = Date.UTC(2026, 0, 1)
let minted = 0
const bytes = (): Uint8Array =>
  Uint8Array.from([++minted >> 8, minted, 3, 5, 7, 11, 13, 17, minted >> 8, minted])

/** A reply as tests see it, with the fields that they use most often. */
export interface Answer {
  readonly id: string
  readonly handle: string
  readonly principal_id: string
  readonly refused?: string
  readonly [member: string]: unknown
}
export interface Played {
  /** The time of the next command, in Unix milliseconds. */
  at: number
  /** Decides a command and applies its events. Returns the reply or the refusal. */
  send(name: string, input?: unknown, origin?: Partial<Origin>): Answer
  ask<T>(name: string, input?: unknown): T
  deadline(): number | undefined
  /** The events of the last command; empty after a refusal. */
  events: readonly (Event & Readonly<Record<string, unknown>>)[]
  /** The effects of the last command; empty after a refusal. */
  effects: readonly Effect[]
}

/** Creates an actor in its initial state. The ids that it generates have the slot of its own id. */
export function played(actor: AnyActor, self: Address): Played {
  let state: unknown = actor.initial()
  let text = JSON.stringify(state)
  const play: Played = {
    at: START,
    events: [],
    effects: [],
    send(name, input = {}, origin = {}) {
      const cause: Cause = {
        at: play.at,
        principal: { type: 'service_account', id: 'svc_tester' },
        ...origin,
        id: `cmd${++minted}`,
        self,
        shard: 0,
        mint: (prefix) => makeId(prefix, play.at, bytes(), slotOf(self.id)),
        secret: () => `secret${++minted}`,
      }
      const arm = actor.decide[name]
      assert(arm, `the actor decides ${name}`)
      const decided = arm(state as never, input as never, cause)
      assert.equal(JSON.stringify(state), text, 'deciding changes nothing')
      play.events = []
      play.effects = []
      if (isRefusal(decided)) return decided as unknown as Answer
      const { events, reply } = decided as Decided<Event, unknown>
      play.events = JSON.parse(JSON.stringify(events)) as Played['events']
      for (const event of play.events) state = evolve(actor, state, event, play.at)
      if (events.length > 0) {
        text = JSON.stringify(state)
        state = JSON.parse(text) as unknown
      }
      play.effects = play.events.flatMap(
        (event: Event) => actor.react?.[event.type]?.(event as never, self) ?? [],
      )
      return (
        typeof reply === 'function' ? (reply as (state: unknown) => unknown)(state) : reply
      ) as Answer
    },
    ask: <T>(name: string, input?: unknown) =>
      actor.ask?.[name]?.(state as never, input as never, play.at) as T,
    deadline: () => actor.deadline?.(state as never),
  }
  return play
}
