/**
 * Requests to the owners of shards. A request is sent repeatedly until it is answered or its
 * deadline has passed. A shard that this process serves is called directly. Other shards are
 * reached over the bus.
 *
 * Invariants:
 * R1. A request settles once: with the first answer to any of its attempts, or at its deadline.
 * R2. All requests have the same time limit, so their deadlines pass in the order in which they
 *     began, and one timer serves all of them.
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
interface Place {
  readonly partition: number
  readonly shard: number
  readonly subject: string
}

export class OwnerRequests {
  readonly parts: Parts
  readonly probe: OwnerProbe
  readonly deadlines: Deadlines
  readonly #places: (Place | undefined)[] = []

  constructor(parts: Parts) {
    this.parts = parts
    this.probe = new OwnerProbe(parts.clock, parts.random)
    this.deadlines = new Deadlines(parts.clock)
  }
  /** Sends a request to the owner of an actor's shard. */
  send(to: Address, message: ShardRequest): Promise<ShardAnswer> {
    const { partitions, shards } = this.parts
    const shard = shardOf(to.kind, to.id, shards)
    if (shard === undefined) return Promise.resolve(refuse('not_found'))
    const place = this.#place(partitionOf(to.project, partitions), shard)
    return new Promise((answer) => new OwnerRequest(this, place, message, answer).begin())
  }
  #place(partition: number, shard: number): Place {
    const index = partition * this.parts.shards + shard
    return (this.#places[index] ??= {
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
  readonly until: number
  /** Key of the request in `Deadlines`. Set by its `add`. */
  number = 0
  readonly #requests: OwnerRequests
  readonly #place: Place
  readonly #message: ShardRequest
  readonly #answer: (answer: ShardAnswer) => void
  #attempts = 0
  #over = false
  /** Cancels the next attempt. */
  #cancel: (() => void) | undefined

  constructor(
    requests: OwnerRequests,
    place: Place,
    message: ShardRequest,
    answer: (answer: ShardAnswer) => void,
  ) {
    const { clock, deadline } = requests.parts
    this.until = clock.elapsed() + deadline
    this.#requests = requests
    this.#place = place
    this.#message = message
    this.#answer = answer
  }
  begin(): void {
    this.#requests.deadlines.add(this)
    if (this.#requests.probe.isProbing(this.#place.subject)) this.#wait()
    else this.#send()
  }
  /** Ends the request because its deadline has passed. */
  expire(): void {
    this.#end(refuse('service_unavailable', { retry_after: 1 }))
  }
  #send(): void {
    const { bus, clock, local } = this.#requests.parts
    const { partition, shard, subject } = this.#place
    this.#cancel?.()
    this.#cancel = undefined
    const attempt = ++this.#attempts
    const message = attempt === 1 ? this.#message : repeated(this.#message)
    const here = local?.find(partition, shard)
    if (here) {
      here.receive(message, (answer) => this.#received(answer, attempt))
      return
    }
    const left = this.until - clock.elapsed()
    if (left < 1) {
      this.expire()
      return
    }
    this.#cancel = clock.later(Math.min(left, RETRY_AFTER_MS), () => this.#send())
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
      this.#requests.probe.answered(this.#place.subject)
      this.#end(answer)
    }
    // The latest attempt found no owner: the node that answered is not the owner, or no node
    // answered.
    else if (attempt === this.#attempts) this.#wait()
  }
  #wait(): void {
    this.#cancel?.()
    this.#cancel = this.#requests.probe.wait(this.#place.subject, () => this.#send())
  }
  #end(answer: ShardAnswer): void {
    this.#over = true
    this.#cancel?.()
    this.#requests.deadlines.delete(this)
    this.#answer(answer)
  }
}
const notAnswered: ShardAnswer = { not_owner: true }

/** The deadlines of the open requests, in order. */
class Deadlines {
  readonly #clock: Clock
  readonly #open = new TransientMap<number, OwnerRequest>()
  #last = 0
  #cancel: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }
  add(request: OwnerRequest): void {
    request.number = ++this.#last
    this.#open.set(request.number, request)
    this.#cancel ??= this.#arm(request)
  }
  delete(request: OwnerRequest): void {
    this.#open.delete(request.number)
    if (this.#open.size > 0) return
    this.#cancel?.()
    this.#cancel = undefined
  }
  #arm(first: OwnerRequest): () => void {
    return this.#clock.later(Math.max(0, first.until - this.#clock.elapsed()), () => {
      this.#cancel = undefined
      // A timer may be early by a fraction of a millisecond.
      const now = this.#clock.elapsed() + 1
      for (const request of this.#open.values()) {
        if (request.until > now) {
          this.#cancel ??= this.#arm(request)
          return
        }
        request.expire()
      }
    })
  }
}
