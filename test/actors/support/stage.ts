/**
 * Runs one actor under manual control: tests set the time, send commands, and read each decision.
 */
import {
  type AnyActor,
  type Cause,
  type Decided,
  type Effect,
  evolve,
  type Tell,
} from '../../../actors/actor.ts'
import type { Address, Event } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'

export interface Done<R> {
  readonly reply: R
  readonly refusal?: Refusal
  readonly events: readonly Event[]
  readonly soft: readonly Event[]
  readonly tells: readonly Tell[]
  readonly effects: readonly Effect[]
}
export class Stage<S, I extends Record<string, { input: unknown; reply: unknown }>> {
  readonly actor: AnyActor
  readonly self: Address
  state: S
  at: number
  #secrets = 0

  constructor(actor: unknown, self: Address, at = 1_000_000) {
    this.actor = actor as AnyActor
    this.self = self
    this.at = at
    this.state = this.actor.initial() as S
  }
  run<N extends keyof I & string>(name: N, input: I[N]['input']): Done<I[N]['reply']> {
    const cause: Cause = {
      at: this.at,
      principal: { type: 'system', id: 'test' },
      id: 'cmd',
      self: this.self,
      shard: 0,
      mint: (prefix) => `${prefix}_new`,
      secret: () => `secret${++this.#secrets}`,
    }
    const decision = (
      this.actor.decide[name] as unknown as (
        s: S,
        i: unknown,
        c: Cause,
      ) => Decided<Event, I[N]['reply']> | Refusal
    )(this.state, input, cause)
    if (isRefusal(decision))
      return {
        reply: undefined as I[N]['reply'],
        refusal: decision,
        events: [],
        soft: [],
        tells: [],
        effects: [],
      }
    const { events, soft = [], tells = [], reply } = decision
    for (const event of [...soft, ...events])
      this.state = evolve(this.actor, this.state, event, this.at) as S
    const effects = events.flatMap(
      (event) => this.actor.react?.[event.type]?.(event as never, this.self) ?? [],
    )
    return { events, soft, tells, effects, reply: reply as I[N]['reply'] }
  }
  ask<R>(name: string, input: unknown): R {
    return this.actor.ask?.[name]?.(this.state as never, input as never, this.at) as R
  }
  /** Advances the time and wakes the actor at each of its deadlines. Returns the decisions. */
  pass(seconds: number): Done<unknown>[] {
    const until = this.at + seconds * 1000
    const done: Done<unknown>[] = []
    for (let next = this.deadline(); next !== undefined && next <= until; next = this.deadline()) {
      this.at = Math.max(this.at, next)
      done.push(this.run('wake' as keyof I & string, {}))
      if (done.length > 10_000) throw new Error('the actor wants to be woken without end')
    }
    this.at = until
    return done
  }
  deadline(): number | undefined {
    return this.actor.deadline?.(this.state as never)
  }
  reload(): void {
    this.state = JSON.parse(JSON.stringify(this.state)) as S
  }
  /** Simulates a takeover: loads the stored state as a new owner does. */
  recover(): void {
    this.reload()
    this.state = (this.actor.recover?.(this.state as never, this.at) ?? this.state) as S
  }
}
export const types = (done: { readonly events: readonly Event[] }): string[] =>
  done.events.map(({ type }) => type)
