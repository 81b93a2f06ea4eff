/**
 * Requests to the owners of shards. A request is sent repeatedly until it is answered or its
 * deadline has passed. A shard that this process serves is called directly. Other shards are
 * reached over the bus.
 *
 * Invariants:
 * R1. A request settles once: with the first answer to any of its attempts, or at its deadline.
 * R2. All requests have the same time limit, so their deadlines pass in the order in which they
 *     began. The same applies to the times of their next attempts. One timer serves all deadlines,
 *     and another one all attempts.
 */
import type { Address } from '../protocol/entry.ts'
import { refuse } from '../protocol/errors.ts'
import { TransientMap } from '../protocol/rules/transient-map.ts'
import { partitionOf, shardOf, subjects } from '../protocol/subjects.ts'
import type { ShardAnswer, ShardRequest } from './host/deps.ts'
import type { LocalShards } from './host/local-shards.ts'
import type { Bus, Clock, Random } from './host/ports.ts'
import { OwnerProbe } from './observe/owner-probe.ts'

/**
 * Milliseconds after which an unanswered message is sent again. The time is longer than a commit
 * takes, but short enough to abandon a dead owner quickly.
 */
const RETRY_AFTER_MS = 2000

interface Parts {
  readonly bus: Pick<Bus, 'request'>
  readonly clock: Clock
  readonly random: Random
  /** The shards that this process serves. */
  readonly local?: LocalShards | undefined
  readonly partitions: number
  readonly shards: number
  /** Time limit of a request in milliseconds. */
  readonly deadline: number
}
/** A shard, and the subject of messages to its owner. */
interface ShardAddress {
  readonly partition: number
  readonly shard: number
  readonly subject: string
}

export class OwnerRequests {
  readonly parts: Parts
  readonly probe: OwnerProbe
  readonly deadlines: DueInOrder<OwnerRequest>
  /** The requests with an unanswered attempt, which are sent again after `RETRY_AFTER_MS`. */
  readonly attempts: DueInOrder<OwnerRequest>
  readonly #addresses: (ShardAddress | undefined)[] = []

  constructor(parts: Parts) {
    this.parts = parts
    this.probe = new OwnerProbe(parts.clock, parts.random)
    this.deadlines = new DueInOrder(parts.clock, parts.deadline, (request) => request.expire())
    this.attempts = new DueInOrder(parts.clock, RETRY_AFTER_MS, (request) => request.send())
  }
  /** Sends a request to the owner of an actor's shard. */
  send(to: Address, message: ShardRequest): Promise<ShardAnswer> {
    const { partitions, shards } = this.parts
    const shard = shardOf(to.kind, to.id, shards)
    if (shard === undefined) return Promise.resolve(refuse('not_found'))
    const address = this.#address(partitionOf(to.project, partitions), shard)
    return new Promise((answer) => new OwnerRequest(this, address, message, answer).begin())
  }
  #address(partition: number, shard: number): ShardAddress {
    const index = partition * this.parts.shards + shard
    return (this.#addresses[index] ??= {
      partition,
      shard,
      subject: subjects.shard(partition, shard),
    })
  }
}

/**
 * Returns the message to send when a request is repeated. A command is no longer marked as `born`,
 * because its actor may exist by now.
 */
function repeated(message: ShardRequest): ShardRequest {
  if (message.type !== 'command' || !message.command.born) return message
  const { born: _, ...command } = message.command
  return { type: 'command', command }
}

class OwnerRequest {
  readonly #requests: OwnerRequests
  /** Time of the deadline, in milliseconds of `Clock.elapsed`. */
  readonly #until: number
  readonly #address: ShardAddress
  readonly #message: ShardRequest
  readonly #answer: (answer: ShardAnswer) => void
  /** Key of the request in `OwnerRequests.deadlines`. */
  #deadline = 0
  #attempts = 0
  /** Key of the latest attempt in `OwnerRequests.attempts`. */
  #attempt = 0
  #over = false
  /** Ends the wait for the probe of the owner. */
  #stopWaiting: (() => void) | undefined

  constructor(
    requests: OwnerRequests,
    address: ShardAddress,
    message: ShardRequest,
    answer: (answer: ShardAnswer) => void,
  ) {
    const { clock, deadline } = requests.parts
    this.#until = clock.elapsed() + deadline
    this.#requests = requests
    this.#address = address
    this.#message = message
    this.#answer = answer
  }
  begin(): void {
    this.#deadline = this.#requests.deadlines.add(this)
    if (this.#requests.probe.isProbing(this.#address.subject)) this.#wait()
    else this.send()
  }
  /** Ends the request because its deadline has passed. */
  expire(): void {
    this.#end(refuse('service_unavailable', { retry_after: 1 }))
  }
  /** Sends the request, and sends it again later if it is not answered. */
  send(): void {
    const { bus, clock, local } = this.#requests.parts
    const { partition, shard, subject } = this.#address
    this.#cancelNext()
    const attempt = ++this.#attempts
    const message = attempt === 1 ? this.#message : repeated(this.#message)
    const here = local?.find(partition, shard)
    if (here) {
      here.receive(message, (answer) => this.#received(answer, attempt))
      return
    }
    const left = this.#until - clock.elapsed()
    if (left < 1) {
      this.expire()
      return
    }
    this.#attempt = this.#requests.attempts.add(this)
    void bus
      .request(subject, message, left)
      .then((answer) =>
        this.#received(
          typeof answer === 'object' ? (answer.answer as ShardAnswer) : notAnswered,
          attempt,
        ),
      )
  }
  #received(answer: ShardAnswer, attempt: number): void {
    if (this.#over) return
    if (!('not_owner' in answer)) {
      this.#requests.probe.answered(this.#address.subject)
      this.#end(answer)
    }
    // The latest attempt found no owner: the node that answered is not the owner, or no node
    // answered.
    else if (attempt === this.#attempts) this.#wait()
  }
  #wait(): void {
    this.#cancelNext()
    this.#stopWaiting = this.#requests.probe.wait(this.#address.subject, () => this.send())
  }
  /** Cancels the next attempt. */
  #cancelNext(): void {
    this.#requests.attempts.delete(this.#attempt)
    this.#stopWaiting?.()
    this.#stopWaiting = undefined
  }
  #end(answer: ShardAnswer): void {
    this.#over = true
    this.#cancelNext()
    this.#requests.deadlines.delete(this.#deadline)
    this.#answer(answer)
  }
}
const notAnswered: ShardAnswer = { not_owner: true }

/**
 * Items that become due after the same delay, and therefore in the order in which they were added.
 * One timer serves all of them.
 */
class DueInOrder<T> {
  readonly #clock: Clock
  readonly #delay: number
  readonly #run: (item: T) => void
  readonly #waiting = new TransientMap<number, { readonly item: T; readonly at: number }>()
  #last = 0
  #cancel: (() => void) | undefined

  /**
   * @param delay milliseconds after which an item is due.
   * @param run called with an item that is due. The item must then be deleted.
   */
  constructor(clock: Clock, delay: number, run: (item: T) => void) {
    this.#clock = clock
    this.#delay = delay
    this.#run = run
  }
  /** Adds an item, and returns its key for `delete`. Keys are greater than 0. */
  add(item: T): number {
    const at = this.#clock.elapsed() + this.#delay
    this.#waiting.set(++this.#last, { item, at })
    if (!this.#cancel) this.#arm(at)
    return this.#last
  }
  delete(key: number): void {
    if (!this.#waiting.delete(key) || this.#waiting.size > 0) return
    this.#cancel?.()
    this.#cancel = undefined
  }
  /** Sets the timer to a time, instead of any other time. */
  #arm(first: number): void {
    this.#cancel?.()
    this.#cancel = this.#clock.later(Math.max(0, first - this.#clock.elapsed()), () => {
      this.#cancel = undefined
      // A timer may be early by a fraction of a millisecond.
      const now = this.#clock.elapsed() + 1
      for (const { item, at } of this.#waiting.values()) {
        // `run` may have added an item and set the timer to a later time.
        if (at > now) return this.#arm(at)
        this.#run(item)
      }
    })
  }
}
