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
import { partitionOf, shardOf, subjects } from '../protocol/subjects.ts'
import { DueInOrder, type Waiting } from './due-in-order.ts'
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
  /** The request in `OwnerRequests.deadlines`. */
  #deadline: Waiting<OwnerRequest> | undefined
  #attempts = 0
  /** The latest attempt in `OwnerRequests.attempts`, until it is answered or repeated. */
  #attempt: Waiting<OwnerRequest> | undefined
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
    if (this.#attempt) this.#requests.attempts.delete(this.#attempt)
    this.#attempt = undefined
    this.#stopWaiting?.()
    this.#stopWaiting = undefined
  }
  #end(answer: ShardAnswer): void {
    this.#over = true
    this.#cancelNext()
    if (this.#deadline) this.#requests.deadlines.delete(this.#deadline)
    this.#deadline = undefined
    this.#answer(answer)
  }
}
const notAnswered: ShardAnswer = { not_owner: true }
