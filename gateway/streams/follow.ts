/**
 * Follows one sequence of committed events for many clients: each client first receives what the
 * view has, and then live entries.
 *
 * Invariants:
 * F1. Every client gets every item after its cursor once, in order: `sent` is the last position
 *     sent to it, and an item at or below `sent` is never written again.
 * F2. All clients in `#live` have received everything up to `#head`. An entry whose `prev` lies
 *     beyond `#head` reveals a gap: the view is queried for the missing part, once for all of them.
 * F3. A client joins `#live` only when the view's answer covers every cursor received before the
 *     query. The subscription to live entries starts before the query, so no entry is skipped. A
 *     page counts only up to its own end, because a view may have learned "committed by now" from a
 *     leader that was replaced meanwhile. Cursors received but not covered by a page are queried
 *     explicitly.
 * F4. A view that does not become current in time returns what it has: followers get events late
 *     rather than never.
 * F5. A client that does not read is removed from `#live`, and continues by replay when its socket
 *     has drained: nothing is buffered here.
 */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Sink } from '../http/respond.ts'
import { sleep } from '../timing.ts'
import { type Chunk, chunkAfter, chunkFrames, type Item } from './chunk.ts'
import { resetFrame } from './sse.ts'

/** A part of the sequence after a cursor. */
export interface Page {
  readonly items: readonly Item[]
  /**
   * Without `more`: the position that the page reaches, whatever cursor was requested; it never
   * lies in the future.
   */
  readonly last: number
  readonly more: boolean
  /** No item will ever follow the last one. */
  readonly ended: boolean
  /** Items below this cursor are no longer stored; 0 when all are stored. */
  readonly oldest: number
  /** The page extends beyond the requested cursor, but perhaps not up to `fresh`. */
  readonly partial?: boolean
  /** The view did not reach the required position in time. */
  readonly late?: boolean | undefined
}
/**
 * Milliseconds that a query waits for the view to become current before it accepts what the view
 * has.
 */
export const WITHIN = 1000
/**
 * The source of pages. `fresh`: the page must contain everything up to this cursor; absent:
 * everything committed by now. `behind`: the previous page had more after it, so a longer page is
 * preferred. Otherwise the duration of a query would limit the throughput of the stream.
 */
export type Ask = (after: number, fresh?: number, behind?: boolean) => Promise<Page | Refusal>
/** The first page of a client, and the highest cursor received before it was queried. */
export interface Opening {
  readonly page: Page
  readonly heard: number
}

interface Client {
  readonly sink: Sink
  sent: number
  waiting: boolean
  /** Whether more items follow those sent last. */
  more: boolean
}
/** Milliseconds between failed queries; the last value repeats. */
const PAUSES = [50, 200, 500, 1000, 2000]
/** The pause after a number of failed queries in a row, in milliseconds. */
export const pauseMs = (failures: number): number =>
  PAUSES[Math.min(failures, PAUSES.length - 1)] ?? 0

export class Follower {
  readonly #ask: Ask
  readonly #pause: (ms: number, run: () => void) => () => void
  readonly #fallback: () => void
  readonly #given: (items: number) => void
  readonly #clients = new Set<Client>()
  readonly #live = new Set<Client>()
  #head = 0
  #heard = 0
  #doubt = false
  #pulling = false

  /**
   * @param pause runs something later.
   * @param fallback counts a client that was too slow.
   * @param given counts items written.
   */
  constructor(
    ask: Ask,
    pause: (ms: number, run: () => void) => () => void,
    fallback: () => void = () => {},
    given: (items: number) => void = () => {},
  ) {
    this.#ask = ask
    this.#pause = pause
    this.#fallback = fallback
    this.#given = given
  }

  get clients(): number {
    return this.#clients.size
  }

  /** Queries the first page of a client; by default, the page after its cursor. */
  async open(after: number, ask = () => this.#ask(after)): Promise<Opening | Refusal> {
    const heard = this.#heard
    const page = await ask()
    return isRefusal(page) ? page : { page, heard }
  }

  /**
   * Adds a client; its sink ends when the sequence does.
   * @param opening the page after `after`, from `open`.
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
   * Handles a committed entry.
   * @param prev the last cursor of the entry before it.
   * @param last its own last cursor.
   */
  hear(prev: number, last: number, items: () => readonly Item[], ended: boolean): void {
    this.#heard = Math.max(this.#heard, last)
    if (this.#live.size === 0 || this.#pulling || last <= this.#head) return
    if (prev > this.#head) return void this.#pull()
    this.#broadcast(items())
    this.#head = last
    if (ended) this.#end(this.#live)
  }

  /** Handles the report that everything up to a cursor is committed: fetches the new items. */
  notice(cursor: number): void {
    this.#heard = Math.max(this.#heard, cursor)
    if (!this.#pulling) void this.#pull()
  }

  /**
   * Writes content that is not part of the sequence to the live clients that read; it is never
   * repeated.
   */
  show(content: string): void {
    for (const { sink } of this.#live) if (!sink.full) sink.write(content)
  }

  /** Queries the view for news, because live entries may have been lost. */
  check(): void {
    this.#doubt = true
    if (!this.#pulling) void this.#pull()
  }

  /**
   * Ends all clients, which then reconnect with their cursors.
   * @param farewell returns the last frame of a client.
   */
  stop(farewell: () => string): void {
    for (const { sink } of this.#clients) sink.write(farewell())
    this.#end(this.#clients)
  }

  /** Advances the live clients to the highest cursor received. */
  async #pull(): Promise<void> {
    this.#pulling = true
    let failures = 0
    /**
     * The previous page had more after it. The next query accepts any view that has reached that
     * page; only the last page must be current.
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
   * Sends a client what the view has after its cursor, until the client has caught up with the live
   * ones, waits for its socket, or ends.
   */
  async #replay(client: Client, opening?: Opening): Promise<void> {
    let given = opening
    let behind = false
    /**
     * Whether to query a long page. In contrast to `client.more` it is false after the client had
     * to drain, because such a client may not accept more than a short page.
     */
    let long = false
    for (let failures = 0; !client.sink.closed; ) {
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
      long = client.more = page.more
      if (client.sent > 0 && page.oldest - 1 > client.sent) {
        client.sink.write(resetFrame(client.sent, page.oldest))
        client.sent = page.oldest - 1
      }
      if (!this.#give(client, chunkFrames(page.items, false))) client.more = true
      // A page queried while `passing` is complete for the client's position, but not current. A
      // current page must follow it.
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

  /** Queries a page; undefined if that fails. A sequence that was deleted has ended. */
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
      this.#fallback()
    }
  }

  /** Writes the chunks that the client lacks. @returns false when the client must drain first. */
  #give(client: Client, chunks: readonly Chunk[]): boolean {
    for (const chunk of chunks) {
      if (chunk.last <= client.sent) continue
      if (client.sink.full) return false
      const { content, items } = chunk.first > client.sent ? chunk : chunkAfter(chunk, client.sent)
      client.sink.write(content)
      client.sent = chunk.last
      this.#given(items.length)
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
