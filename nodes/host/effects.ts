/**
 * Performing effects: after the commit, at least once, under stable ids. Tells reach each receiver in order, so that it
 * can drop repeats by remembering the last one taken from this shard.
 */
import type { Effect, Push } from '../../actors/actor.ts'
import { sequenceOf, type Address, type Command, type Event, type Placed } from '../../protocol/entry.ts'
import { partitionOf, shardOf, subjects } from '../../protocol/subjects.ts'
import { cellKey, effectId } from './cell.ts'
import type { Notice, ShardAnswer } from './deps.ts'
import type { Shard } from './shard.ts'

/** An effect with its id, and the sequence of the envelope it follows from. */
export interface Planned {
  readonly id: string
  readonly sequence: number
  readonly from: Address
  readonly at: number
  readonly effect: Effect
}

/** The effects of an entry, in order. */
export function plan(shard: Shard, { cursor, entry }: Placed): Planned[] {
  const react = shard.deps.kinds[entry.kind].react
  if (!react) return []
  const planned: Planned[] = []
  const { events } = entry
  for (let i = 0; i < events.length; i++) {
    const event = events[i] as Event
    const effects = react[event.type]?.(event as never, entry) ?? []
    for (let k = 0; k < effects.length; k++) {
      planned.push({ id: effectId(shard.partition, shard.shard, cursor + i, k), sequence: sequenceOf(cursor), from: entry, at: entry.origin.at, effect: effects[k] as Effect })
    }
  }
  return planned
}

/** How often people are told at most, over some four minutes. */
const TELLINGS = 9

export class Effects {
  readonly #shard: Shard
  /** Unfinished effects by sequence, oldest first. */
  readonly #pending = new Map<number, number>()
  /** The tail of the line of tells to each receiver. */
  readonly #lines = new Map<string, Promise<void>>()
  #stopped = false

  constructor(shard: Shard) {
    this.#shard = shard
  }
  /** Sequence of the oldest envelope with unfinished effects, if any. */
  low(): number | undefined {
    return this.#pending.keys().next().value
  }
  stop(): void {
    this.#stopped = true
  }
  /** Perform again what may not have been performed before the takeover. */
  begin(pending: readonly Planned[]): void {
    for (const planned of pending) this.#start(planned)
  }
  /** Perform the effects of an entry that was just committed. */
  perform(placed: Placed): void {
    for (const planned of plan(this.#shard, placed)) this.#start(planned)
  }

  #start(planned: Planned): void {
    const { effect, from } = planned
    if ('offer' in effect) {
      this.#shard.offers.kick(from.project, effect.offer.queue)
      return
    }
    if ('notify' in effect && !this.#shard.deps.notify) return
    this.#pending.set(planned.sequence, (this.#pending.get(planned.sequence) ?? 0) + 1)
    const done = 'push' in effect ? this.#push(effect.push, from) : 'notify' in effect ? this.#notify(planned, effect.notify.about) : this.#line(planned)
    done.catch((error) => this.#shard.deps.log.error({ err: error, effect: planned.id }, 'an effect failed')).finally(() => {
      // What a stop cut short stays unfinished: the checkpoint must not pass it, so that the next owner performs it.
      if (this.#stopped) return
      const left = (this.#pending.get(planned.sequence) ?? 1) - 1
      if (left === 0) this.#pending.delete(planned.sequence)
      else this.#pending.set(planned.sequence, left)
    })
  }

  #line(planned: Planned): Promise<void> {
    if (!('tell' in planned.effect)) return Promise.resolve()
    const { tell } = planned.effect
    const to: Address = { project: tell.to.project ?? planned.from.project, kind: tell.to.kind, id: tell.to.id }
    const key = cellKey(to)
    const before = this.#lines.get(key) ?? Promise.resolve()
    const done = before.then(() => this.#tell({
      ...to, command_id: planned.id, name: tell.name, input: tell.input,
      origin: { at: planned.at, principal: { type: 'system', id: 'system' }, credential: { type: 'internal', id: planned.from.id } },
    }))
    this.#lines.set(key, done)
    return done.finally(() => { if (this.#lines.get(key) === done) this.#lines.delete(key) })
  }
  async #tell(command: Command): Promise<void> {
    const { bus, clock, log, partitions, shards } = this.#shard.deps
    const shard = shardOf(command.kind, command.id, shards)
    if (shard === undefined) return
    const subject = subjects.shard(partitionOf(command.project, partitions), shard)
    for (let attempt = 0; !this.#stopped; attempt++) {
      const answer = await bus.request(subject, { type: 'command', command }, 10_000)
      if (typeof answer === 'object' && !('not_owner' in (answer.answer as ShardAnswer))) return
      if (attempt === 20) log.warn({ subject, command: command.name }, 'an effect is still waiting for its receiver')
      await new Promise<void>((again) => clock.later(Math.min(1000, 10 * 2 ** Math.min(attempt, 7)), again))
    }
  }

  /** A checkpoint waits for this, so it ends: who cannot be reached for minutes is not told. What is over by then needs no telling. */
  async #notify({ id, from }: Planned, about: Notice['about']): Promise<void> {
    const { clock, log, notify } = this.#shard.deps
    for (let attempt = 0; attempt < TELLINGS && !this.#stopped; attempt++) {
      const record = await this.#read(from, 'get', {})
      if (record === undefined || record === null || (await notify?.({ id, about, of: from, record }))) return
      await new Promise<void>((again) => clock.later(Math.min(60_000, 1000 * 2 ** attempt), again))
    }
    if (!this.#stopped) log.warn({ effect: id, about, id: from.id }, 'people could not be told')
  }

  async #push({ gateway, message, spec }: Push, from: Address): Promise<void> {
    const { bus } = this.#shard.deps
    let content: Record<string, unknown> = { ...message }
    if (spec) {
      const owner: Address = { project: from.project, kind: spec.kind, id: spec.id }
      const read = this.#shard.peek(owner, spec.ask, spec.input)?.result ?? (await this.#read(owner, spec.ask, spec.input))
      if (read === undefined || read === null) return
      content = { ...content, job: { ...(message['job'] as object), spec: read } }
    }
    if (gateway === '') return
    const answer = await bus.request(subjects.gateway(gateway), content, 2000)
    const delivered = typeof answer === 'object' && (answer.answer as { ok?: boolean } | undefined)?.ok === true
    if (!delivered && message.type === 'assign') await this.#release(from, message['job'] as { id: string; lease_token: string })
  }
  /** Asked again while the own lease is stale: what is not delivered now would stay leased to nobody. */
  async #read(owner: Address, ask: string, input: unknown): Promise<unknown> {
    for (;;) {
      const answer = await this.#shard.ask(owner, ask, input)
      if ('reply' in answer) return answer.reply
      if (!('not_owner' in answer) || this.#stopped) return undefined
      await new Promise<void>((again) => this.#shard.deps.clock.later(100, again))
    }
  }
  /** The gateway is gone or the worker left: the job waits again, without an attempt used. */
  async #release(queue: Address, job: { id: string; lease_token: string }): Promise<void> {
    const { clock, node } = this.#shard.deps
    await this.#shard.submit({
      ...queue, command_id: `release:${job.lease_token}`, name: 'queue.release', input: { job_id: job.id, lease_token: job.lease_token },
      origin: { at: clock.now(), principal: { type: 'system', id: 'system' }, credential: { type: 'internal', id: node } },
    })
  }
}
