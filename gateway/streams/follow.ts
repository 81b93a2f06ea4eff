/**
 * Follows one sequence of committed events for many clients. Each client first receives the items
 * that the view has after its cursor (replay), and then live entries. The source of a sequence
 * (`followers.ts`) defines its content.
 *
 * Invariants:
 * F1. Every client receives every item after its cursor once and in order. `sent` is the last
 *     position that was sent to the client, and an item at or below `sent` is never written again.
 *     A reset frame reports items that are no longer stored, and a cursor after the end of the
 *     journal. The journal has lost its end, for example because a backup was restored. Items after
 *     a reset of the second kind may have cursors that the client has received before.
 * F2. All clients in `#live` have received everything up to `#head`. An entry whose `prev` is
 *     greater than `#head` reveals a gap. The view is then queried once for all live clients.
 * F3. A client joins `#live` only when its pages cover every cursor that the follower has received.
 *     The subscription to live entries starts before the query, so no entry is skipped. A page
 *     without `fresh` covers only the cursors up to its own end, because the view may have read the
 *     last committed position from a replaced stream leader. Received cursors that no page covers
 *     are then requested with `fresh`.
 * F4. A view that does not become current within `MAX_WAIT_MS` returns the events that it has. They
 *     are sent, and the query is repeated.
 * F5. A client that does not read is removed from `#live`, and continues with replay when its
 *     socket has drained, so nothing is buffered here.
 */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Sink } from '../http/respond.ts'
import { sleep } from '../timing.ts'
import { type Chunk, chunkAfter, chunkFrames, type Item } from './chunk.ts'
import { resetFrame, restartFrame } from './sse.ts'

/** A part of the sequence after a cursor. */
export interface Page {
  readonly items: readonly Item[]
  /**
   * The position up to which the page is complete if `more` is false. It does not depend on the
   * requested cursor, and is never greater than the last committed position.
   */
  readonly last: number
  readonly more: boolean
  /** Whether the sequence has ended, so that no item will follow. */
  readonly ended: boolean
  /** Items below this cursor are no longer stored. 0 when all items are stored. */
  readonly oldest: number
  /** Whether the page may end before the cursor `fresh`. */
  readonly partial?: boolean
  /** Whether the view did not reach the required position in time. */
  readonly late?: boolean | undefined
  /**
   * Present if the requested cursor is after everything that the view has applied: the position
   * from which a client with this cursor continues if the view is current.
   */
  readonly restart?: number | undefined
}
/** Maximum time in milliseconds for which a query waits for the view to become current. */
export const MAX_WAIT_MS = 1000
/**
 * Fetches the page after a cursor. The page must contain everything up to the cursor `fresh` or,
 * without `fresh`, everything that was committed before the query. `behind` is true if the previous
 * page was not the last. In this case, longer pages are preferred, because the latency of one query
 * per short page would limit the throughput of the stream.
 */
export type Ask = (after: number, fresh?: number, behind?: boolean) => Promise<Page | Refusal>
/** The first page of a client, and the highest cursor that was received before the query. */
export interface Opening {
  readonly page: Page
  readonly heard: number
}

interface Client {
  readonly sink: Sink
  sent: number
  waiting: boolean
  /** Whether the view has more items after the last sent item. */
  more: boolean
}
/**
 * Number of further queries that must confirm that a cursor is after the end of the journal. With
 * the pauses between them, they take longer than a replaced stream leader answers.
 */
const RESTART_CHECKS = 4
/** Back-off between failed queries in milliseconds. The last value repeats. */
const PAUSES = [50, 200, 500, 1000, 2000]
/**
 * Returns the pause after a failed query, in milliseconds. `failures` is the number of consecutive
 * failures before it.
 */
export const pauseMs = (failures: number): number =>
  PAUSES[Math.min(failures, PAUSES.length - 1)] ?? 0

export class Follower {
  readonly #ask: Ask
  readonly #pause: (ms: number, run: () => void) => () => void
  readonly #countFallback: () => void
  readonly #countSent: (items: number) => void
  readonly #clients = new Set<Client>()
  readonly #live = new Set<Client>()
  #head = 0
  #heard = 0
  #doubt = false
  #pulling = false

  /**
   * @param pause runs a function after a time in milliseconds.
   * @param countFallback called for each live client that was too slow and returns to replay.
   * @param countSent called with the number of items that were written.
   */
  constructor(
    ask: Ask,
    pause: (ms: number, run: () => void) => () => void,
    countFallback: () => void = () => {},
    countSent: (items: number) => void = () => {},
  ) {
    this.#ask = ask
    this.#pause = pause
    this.#countFallback = countFallback
    this.#countSent = countSent
  }

  get clients(): number {
    return this.#clients.size
  }

  /** Fetches the first page of a client with `ask`; by default, the page after the cursor. */
  async open(after: number, ask = () => this.#ask(after)): Promise<Opening | Refusal> {
    const heard = this.#heard
    const page = await ask()
    return isRefusal(page) ? page : { page, heard }
  }

  /**
   * Adds a client. Its sink ends when the sequence ends.
   * @param after cursor after which the client receives items.
   * @param opening the first page, from `open`.
   */
  join(sink: Sink, after: number, opening: Opening): void {
    const client: Client = { sink, sent: after, waiting: false, more: false }
    this.#clients.add(client)
    sink.onClose(() => this.#leave(client))
    sink.onDrain(() => {
      if (!client.waiting) return
      client.waiting = false
      void this.#replay(client)
    })
    if (sink.closed) this.#leave(client)
    else void this.#replay(client, opening)
  }

  /**
   * Handles a committed entry of the sequence.
   * @param prev the last cursor of the previous entry.
   * @param last the last cursor of this entry.
   * @param items returns the items of this entry; called only when they are sent.
   * @param ended whether the sequence ends with this entry.
   */
  hear(prev: number, last: number, items: () => readonly Item[], ended: boolean): void {
    this.#heard = Math.max(this.#heard, last)
    if (this.#live.size === 0 || this.#pulling || last <= this.#head) return
    if (prev > this.#head) return void this.#pull()
    this.#broadcast(items())
    this.#head = last
    if (ended) this.#end(this.#live)
  }

  /** Queries the view, because items up to this cursor may have been committed. */
  notice(cursor: number): void {
    this.#heard = Math.max(this.#heard, cursor)
    if (!this.#pulling) void this.#pull()
  }

  /**
   * Writes content that is not part of the sequence to the live clients whose sink is not full. The
   * content is never sent again.
   */
  show(content: string): void {
    for (const { sink } of this.#live) if (!sink.full) sink.write(content)
  }

  /** Queries the view for new items, because live entries may have been lost. */
  check(): void {
    this.#doubt = true
    if (!this.#pulling) void this.#pull()
  }

  /**
   * Ends the streams of all clients, so that they reconnect with their cursors.
   * @param farewell returns the last frame for a client.
   */
  stop(farewell: () => string): void {
    for (const { sink } of this.#clients) sink.write(farewell())
    this.#end(this.#clients)
  }

  /**
   * Queries the view and sends its items to the live clients, until the clients have reached the
   * highest cursor received.
   */
  async #pull(): Promise<void> {
    this.#pulling = true
    let failures = 0
    /**
     * Whether more pages follow the previous page. If so, the view only has to reach the end of the
     * previous page to answer, because only the last page must be current.
     */
    let passing = false
    while (this.#live.size > 0 && (this.#heard > this.#head || this.#doubt || passing)) {
      const heard = this.#heard
      const doubt = this.#doubt && !passing
      if (doubt) this.#doubt = false
      const fresh: number | undefined = passing ? this.#head : doubt ? undefined : heard
      const page: Page | undefined = await this.#page(this.#head, fresh, passing)
      if (!page) {
        this.#doubt ||= doubt
        await this.#sleep(failures++)
        continue
      }
      failures = 0
      this.#broadcast(page.items)
      const whole = !page.more && !page.late
      this.#head = Math.max(
        this.#head,
        page.items.at(-1)?.cursor ?? 0,
        ...(page.more ? [] : [page.last]),
        ...(!whole || page.partial || fresh === undefined ? [] : [fresh]),
      )
      if (!whole) this.#doubt ||= doubt
      else if (page.ended) this.#end(this.#live)
      passing = page.more
    }
    this.#pulling = false
  }

  /**
   * Sends a client the items that the view has after its cursor, until the client joins the live
   * clients, its sink is full, or its stream ends.
   */
  async #replay(client: Client, opening?: Opening): Promise<void> {
    let given = opening
    let behind = false
    /**
     * Whether to request a long page. The first page after the client's socket had to drain is
     * short, because the client may not accept a long one.
     */
    let long = false
    for (let failures = 0, doubts = 0; !client.sink.closed; ) {
      if (client.sink.full) return void (client.waiting = true)
      const heard = given?.heard ?? this.#heard
      const passing = client.more
      const fresh: number | undefined = passing ? client.sent : behind ? heard : undefined
      const page: Page | undefined = given?.page ?? (await this.#page(client.sent, fresh, long))
      given = undefined
      if (client.sink.closed) return
      if (!page) {
        await this.#sleep(failures++)
        continue
      }
      failures = 0
      if (page.restart !== undefined && fresh === undefined && !page.late) {
        // The view may have read the end of the journal from a replaced stream leader.
        if (doubts < RESTART_CHECKS) {
          await this.#sleep(doubts++)
          continue
        }
        client.sink.write(restartFrame(client.sent, page.restart))
        client.sent = page.restart
        continue
      }
      long = client.more = page.more
      if (client.sent > 0 && page.oldest - 1 > client.sent) {
        client.sink.write(resetFrame(client.sent, page.oldest))
        client.sent = page.oldest - 1
      }
      if (!this.#give(client, chunkFrames(page.items, false))) client.more = true
      // A page that was requested while `passing` need not be current, so another page must follow.
      if (client.more || passing || page.late) continue
      if (page.ended) return this.#end([client])
      const reached = Math.max(
        page.partial ? 0 : (fresh ?? 0),
        page.items.at(-1)?.cursor ?? 0,
        page.last,
      )
      client.sent = Math.max(client.sent, reached)
      behind = client.sent < this.#heard
      if (behind) continue
      if (this.#live.size === 0 && !this.#pulling) this.#head = reached
      if (client.sent < this.#head) continue
      this.#live.add(client)
      return
    }
  }

  /**
   * Fetches a page. Returns undefined if the query fails, and an empty last page if the sequence no
   * longer exists.
   */
  async #page(after: number, fresh: number | undefined, long: boolean): Promise<Page | undefined> {
    const page = await this.#ask(after, fresh, long).catch(() => undefined)
    if (page === undefined || !isRefusal(page)) return page
    return page.refused === 'not_found'
      ? { items: [], last: after, more: false, ended: true, oldest: 0 }
      : undefined
  }

  #broadcast(items: readonly Item[]): void {
    if (items.length === 0) return
    const chunks = chunkFrames(items, this.#live.size > 1)
    for (const client of this.#live) {
      if (this.#give(client, chunks)) continue
      this.#live.delete(client)
      client.waiting = client.more = true
      this.#countFallback()
    }
  }

  /**
   * Writes the parts of chunks that a client has not received.
   * @returns false when the client's socket must drain first.
   */
  #give(client: Client, chunks: readonly Chunk[]): boolean {
    for (const chunk of chunks) {
      if (chunk.last <= client.sent) continue
      if (client.sink.full) return false
      const { content, items } = chunk.first > client.sent ? chunk : chunkAfter(chunk, client.sent)
      client.sink.write(content)
      client.sent = chunk.last
      this.#countSent(items.length)
    }
    return true
  }

  #end(clients: Iterable<Client>): void {
    for (const { sink } of [...clients]) sink.end()
  }

  #leave(client: Client): void {
    this.#clients.delete(client)
    this.#live.delete(client)
  }

  #sleep(failures: number): Promise<void> {
    return sleep({ later: this.#pause }, pauseMs(failures))
  }
}
