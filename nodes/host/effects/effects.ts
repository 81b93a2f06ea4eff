/**
 * Performs effects after the commit, at least once, under stable ids. Tells (commands to other
 * actors) reach each receiver in order. A receiver can therefore drop repeats by remembering the
 * last tell that it applied from each shard.
 */
import type { Effect, Push } from '../../../actors/actor.ts'
import { type Address, type Event, type PlacedEntry, sequenceOf } from '../../../protocol/entry.ts'
import { subjects } from '../../../protocol/subjects.ts'
import type { Notice } from '../deps.ts'
import { actorKey, effectId } from '../memory/actor-instance.ts'
import type { ActorRequests, ShardContext } from '../shard-context.ts'
import { Warnings } from '../warnings.ts'
import type { Offers } from './offers.ts'
import { Outbox } from './outbox.ts'
import { Pushes } from './pushes.ts'

/** An effect with its id, and the sequence of the envelope that caused it. */
export interface Planned {
  readonly id: string
  readonly sequence: number
  readonly from: Address
  readonly at: number
  readonly effect: Effect
  /**
   * Approximate size of the effect in characters: the size of the event that caused it, or its own
   * size if the event has many effects.
   */
  readonly size: number
}

/**
 * Returns the effects of an entry, in order.
 * @param length length of the entry's JSON in characters, if known.
 */
export function planEffects(
  context: ShardContext,
  placed: PlacedEntry,
  length = ASSUMED_LENGTH,
): Planned[] {
  const planned: Planned[] = []
  eachEffect(context, placed, length, (one) => planned.push(one))
  return planned
}
function eachEffect(
  { deps, partition, shard }: ShardContext,
  { cursor, entry }: PlacedEntry,
  length: number,
  visit: (planned: Planned) => void,
): void {
  const react = deps.kinds[entry.kind].react
  if (!react) return
  const { events } = entry
  for (let i = 0; i < events.length; i++) {
    const event = events[i] as Event
    const effects = react[event.type]?.(event as never, entry)
    if (!effects) continue
    for (let k = 0; k < effects.length; k++)
      visit({
        id: effectId(partition, shard, cursor + i, k),
        sequence: sequenceOf(cursor),
        from: entry,
        at: entry.origin.at,
        effect: effects[k] as Effect,
        size:
          effects.length < MIN_MEASURED
            ? length / events.length
            : JSON.stringify(effects[k]).length,
      })
  }
}

/**
 * Minimum number of effects of one event for which the size of each effect is measured. With fewer
 * effects, the size of the whole event is used for each effect. If this rule applied to the
 * insertion of 1000 rows, a message would have room for only one of its effects.
 */
const MIN_MEASURED = 16
/** Assumed number of characters of an entry whose length is unknown. */
const ASSUMED_LENGTH = 64 * 1024

/**
 * Maximum number of attempts to send a notification or to erase a value, over about three minutes.
 */
const MAX_ATTEMPTS = 9
/** Maximum time in milliseconds to wait for unfinished effects when a shard is given up. */
const DRAIN_TIMEOUT_MS = 1000

type Receiver = Extract<Effect, { readonly tell: unknown }>['tell']['to']
const done = Promise.resolve()

export class Effects {
  readonly #context: ShardContext
  readonly #requests: ActorRequests
  readonly #offers: Pick<Offers, 'kick'>
  /** Number of unfinished effects by sequence, oldest first. */
  readonly #pending = new Map<number, number>()
  /** Tells that are waiting or in flight, by receiver. */
  readonly #outboxes = new Map<string, Outbox>()
  readonly #pushes: Pushes
  readonly #warnings: Warnings
  #stopped = false
  #drained: (() => void) | undefined

  constructor(context: ShardContext, requests: ActorRequests, offers: Pick<Offers, 'kick'>) {
    this.#context = context
    this.#requests = requests
    this.#offers = offers
    this.#pushes = new Pushes(context.deps.bus)
    this.#warnings = new Warnings(context.deps)
  }
  /** Returns the sequence of the oldest envelope with unfinished effects, if any. */
  lowestPending(): number | undefined {
    return this.#pending.keys().next().value
  }
  stop(): void {
    this.#stopped = true
    this.#drained?.()
  }
  /**
   * Resolves when all effects are finished, or after `DRAIN_TIMEOUT_MS`. The next owner performs
   * unfinished effects again, because the checkpoint's `sequence` stays before them.
   */
  async drain(): Promise<void> {
    if (this.#pending.size === 0) return
    await new Promise<void>((done) => {
      const cancel = this.#context.deps.clock.later(DRAIN_TIMEOUT_MS, done)
      this.#drained = () => {
        cancel()
        done()
      }
    })
    this.#drained = undefined
  }
  /**
   * Starts the effects that the previous owner may have left unfinished, except obsolete messages.
   */
  begin(pending: readonly Planned[]): void {
    for (const planned of pending) if (!this.#isObsolete(planned)) this.#start(planned, true)
  }
  #isObsolete({ effect, from }: Planned): boolean {
    const instance = 'push' in effect && this.#context.instances.loaded(from)
    return instance
      ? (instance.actor.isObsolete?.(instance.state as never, effect.push) ?? false)
      : false
  }
  readonly #begin = (planned: Planned): void => this.#start(planned)
  /** Performs the effects of an entry that was just committed. */
  perform(placed: PlacedEntry, length: number): void {
    eachEffect(this.#context, placed, length, this.#begin)
  }

  /**
   * Performs an effect.
   * @param again whether the effect may have been performed before.
   */
  #start(planned: Planned, again = false): void {
    const { effect, from } = planned
    // Workers and hosts respond to these messages.
    if ('offer' in effect || 'push' in effect || 'host' in effect)
      this.#context.deps.turnEnd?.expectResponses()
    if ('offer' in effect) {
      this.#offers.kick(from.project, effect.offer.queue)
      return
    }
    if ('host' in effect) {
      const { provider, place, request } = effect.host
      this.#context.deps.bus.publish(
        place === undefined ? subjects.hostsOf(provider) : subjects.hostsAt(place),
        request,
      )
      return
    }
    if ('warn' in effect) {
      this.#warnings.say(effect.warn)
      return
    }
    if ('notify' in effect && !this.#context.deps.notify) return
    this.#pending.set(planned.sequence, (this.#pending.get(planned.sequence) ?? 0) + 1)
    if ('tell' in effect) {
      this.#tell(planned, effect.tell.to)
      return
    }
    const done =
      'push' in effect
        ? this.#push(effect.push, from, again)
        : 'notify' in effect
          ? this.#notify(planned, effect.notify.about)
          : this.#erase(planned.id, effect.erase)
    done.then(
      () => this.#finish(planned),
      (error: unknown) => {
        this.#context.deps.log.error(
          { event: 'effect_failed', err: error, effect: planned.id },
          'effect failed',
        )
        this.#finish(planned)
      },
    )
  }
  readonly #finish = ({ sequence }: Planned): void => {
    // An effect that was interrupted by a stop remains unfinished. The checkpoint must not pass
    // it, because the next owner has to perform it.
    if (this.#stopped) return
    const left = (this.#pending.get(sequence) ?? 1) - 1
    if (left > 0) this.#pending.set(sequence, left)
    else {
      this.#pending.delete(sequence)
      if (this.#pending.size === 0) this.#drained?.()
    }
  }

  #tell(planned: Planned, { project = planned.from.project, kind, id }: Receiver): void {
    const address: Address = { project, kind, id }
    const key = actorKey(address)
    let outbox = this.#outboxes.get(key)
    if (!outbox) {
      outbox = new Outbox(this.#context.deps, address, {
        isStopped: () => this.#stopped,
        done: this.#finish,
        over: () => this.#outboxes.delete(key),
      })
      this.#outboxes.set(key, outbox)
    }
    outbox.add(planned)
  }

  /**
   * Notifies people about a record. The checkpoint waits for the notification, so the number of
   * attempts is limited. Nothing is sent when the record no longer exists.
   */
  async #notify({ id, from }: Planned, about: Notice['about']): Promise<void> {
    const { clock, log, notify } = this.#context.deps
    for (let attempt = 0; attempt < MAX_ATTEMPTS && !this.#stopped; attempt++) {
      const record = await this.#read(from, 'get', {})
      if (
        record === undefined ||
        record === null ||
        (await notify?.({ id, about, of: from, record }))
      )
        return
      await new Promise<void>((again) => clock.later(Math.min(60_000, 1000 * 2 ** attempt), again))
    }
    if (!this.#stopped)
      log.warn(
        { event: 'notification_failed', effect: id, about, id: from.id },
        'notification failed',
      )
  }

  /**
   * Erases values that are no longer used. Erasing a value again is harmless. The checkpoint waits
   * for the deletion, so the number of attempts is limited.
   */
  async #erase(id: string, names: readonly string[]): Promise<void> {
    const { blobs, files = blobs, clock, log } = this.#context.deps
    for (const name of names) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS && !this.#stopped; attempt++) {
        const failure = await files.delete(name).then(
          () => undefined,
          (error: unknown) => error,
        )
        if (failure === undefined) break
        if (attempt === MAX_ATTEMPTS - 1)
          log.warn(
            { event: 'value_deletion_failed', effect: id, name, err: failure },
            'value deletion failed',
          )
        else
          await new Promise<void>((again) =>
            clock.later(Math.min(60_000, 1000 * 2 ** attempt), again),
          )
      }
    }
  }

  /**
   * Sends a message to a gateway or an executor. A job that certainly reached no worker is released
   * immediately. A job that may have reached its worker stays leased, because after a release it
   * could be executed twice. After a takeover, no job is released, because the previous owner may
   * already have sent it through a gateway that is no longer connected.
   */
  #push(push: Push, from: Address, again: boolean): Promise<void> {
    const { message, spec } = push
    if (!spec) return this.#deliver(push, message, from, again)
    const owner: Address = { project: from.project, kind: spec.kind, id: spec.id }
    const deliver = (read: unknown): Promise<void> => {
      if (read === undefined || read === null) return done
      const job = message['job'] as { readonly spec: object }
      const content = { ...message, job: { ...job, spec: { ...read, ...job.spec } } }
      return this.#deliver(push, content, from, again)
    }
    const seen = this.#requests.peek(owner, spec.ask, spec.input)?.result ?? undefined
    return seen === undefined
      ? this.#read(owner, spec.ask, spec.input).then(deliver)
      : deliver(seen)
  }
  #deliver(
    { gateway, message }: Push,
    content: Readonly<Record<string, unknown>>,
    from: Address,
    again: boolean,
  ): Promise<void> {
    if (gateway === '') return done
    return this.#pushes.send(gateway, content).then((answer) => {
      const refused =
        answer === 'no_responders' ||
        (typeof answer === 'object' && (answer.answer as { ok?: boolean } | undefined)?.ok !== true)
      if (refused && !again && message.type === 'assign')
        return this.#release(from, message['job'] as { id: string; lease_token: string })
    })
  }
  /**
   * Queries an actor, and retries while this node's lease is stale. Without retries, a job that was
   * not sent would stay leased although no worker has it. Returns undefined when the query is
   * refused or the shard is given up.
   */
  async #read(owner: Address, ask: string, input: unknown): Promise<unknown> {
    for (;;) {
      const answer = await this.#requests.ask(owner, ask, input)
      if ('reply' in answer) return answer.reply
      if (!('not_owner' in answer) || this.#stopped) return undefined
      await new Promise<void>((again) => this.#context.deps.clock.later(100, again))
    }
  }
  /**
   * Requeues a job that was not delivered to its worker. The claim does not count as an attempt.
   */
  async #release(queue: Address, job: { id: string; lease_token: string }): Promise<void> {
    const { clock, node } = this.#context.deps
    await this.#requests.submit({
      ...queue,
      command_id: `release:${job.lease_token}`,
      name: 'queue.release',
      input: { job_id: job.id, lease_token: job.lease_token },
      origin: {
        at: clock.now(),
        principal: { type: 'system', id: 'system' },
        credential: { type: 'internal', id: node },
      },
    })
  }
}
