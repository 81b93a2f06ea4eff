/**
 * Following one sequence of committed events for many clients: each is first given what the view has, then goes on live.
 *
 * Invariants:
 * F1. Every client gets every item after its cursor once, in order: `sent` is the last position it was given, and an item at
 *     or below it is never written again.
 * F2. All of `#live` have been given everything up to `#head`. An entry whose `prev` lies beyond `#head` shows a gap: the view
 *     is asked for what lies between, once for all of them.
 * F3. A client joins `#live` only when the view's answer reaches everything heard of when it was asked. The subscription to
 *     live entries is older than the question, so nothing falls between.
 *     A page counts only up to its own end: what "committed by now" is, a view may have asked of a leader that was replaced
 *     meanwhile. What was heard of and is not in a page is asked for by its cursor.
 * F4. A view that does not reach the present in time gives what it has: who follows is told late, but told.
 * F5. A client that does not read is taken out of `#live` and goes on by replay when it has drained: nothing is buffered here.
 */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { chunkFrames, chunkAfter, type Item, type Chunk } from './chunk.ts'
import type { Sink } from '../http/respond.ts'
import { resetFrame } from './sse.ts'

/** A part of the sequence after a cursor. */
export interface Page {
  readonly items: readonly Item[]
  /** Without `more`: a position that was reached, whatever cursor was asked for; it never lies in the future. */
  readonly last: number
  readonly more: boolean
  /** Nothing will ever follow the last item. */
  readonly ended: boolean
  /** Cursors below are no longer kept; 0 when all are. */
  readonly oldest: number
  /** It goes beyond the cursor that was asked for, but perhaps not as far as `fresh`. */
  readonly partial?: boolean
  /** Who gave it did not get as far as it was asked to in time. */
  readonly late?: boolean | undefined
}
/** Milliseconds for which those who follow would rather wait for the present than have what there is. */
export const WITHIN = 1000
/**
 * Where pages come from. `fresh`: the answer must contain everything up to this cursor; absent: everything committed by now.
 * `behind`: the page before had more after it, so a longer one is welcome: else what a question takes would limit how much
 * can be followed.
 */
export type Ask = (after: number, fresh?: number, behind?: boolean) => Promise<Page | Refusal>
/** The first page of a client and what had been heard of when it was asked. */
export interface Opening {
  readonly page: Page
  readonly heard: number
}

interface Client {
  readonly sink: Sink
  sent: number
  waiting: boolean
  /** What it was given last had more after it. */
  more: boolean
}
/** Pauses between questions that fail, in milliseconds: the last one repeats. */
const PAUSES = [50, 200, 500, 1000, 2000]

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

  /** @param pause runs something later. @param fallback counts a client that was too slow. @param given counts items written. */
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

  /** Ask for the first page of a client: by default what follows its cursor. */
  async open(after: number, ask = () => this.#ask(after)): Promise<Opening | Refusal> {
    const heard = this.#heard
    const page = await ask()
    return isRefusal(page) ? page : { page, heard }
  }

  /** Add a client; its sink ends when the sequence does. `opening` comes from `open`: what follows `after`. */
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

  /** A committed entry: `last` its last cursor, `prev` that of the entry before it. */
  hear(prev: number, last: number, items: () => readonly Item[], ended: boolean): void {
    this.#heard = Math.max(this.#heard, last)
    if (this.#live.size === 0 || this.#pulling || last <= this.#head) return
    if (prev > this.#head) return void this.#pull()
    this.#broadcast(items())
    this.#head = last
    if (ended) this.#end(this.#live)
  }

  /** Everything up to a cursor is committed: fetch it. */
  notice(cursor: number): void {
    this.#heard = Math.max(this.#heard, cursor)
    if (!this.#pulling) void this.#pull()
  }

  /** Something that is no part of the sequence: whoever is in step and reads is shown it, and nobody later. */
  show(content: string): void {
    for (const { sink } of this.#live) if (!sink.full) sink.write(content)
  }

  /** Live entries may have been lost: ask whether there is anything new. */
  check(): void {
    this.#doubt = true
    if (!this.#pulling) void this.#pull()
  }

  /** End all clients; they come back with their cursors. @param farewell the last frame of each. */
  stop(farewell: () => string): void {
    for (const { sink } of this.#clients) sink.write(farewell())
    this.#end(this.#clients)
  }

  /** Bring the live clients to what was heard of. */
  async #pull(): Promise<void> {
    this.#pulling = true
    let failures = 0
    /** The page before had more after it: the next one takes what a view has that knows of it; only the last has to reach the present. */
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

  /** Give a client what the view has after its cursor, until it is in step with the live ones, waits for its socket, or ends. */
  async #replay(client: Client, opening?: Opening): Promise<void> {
    let given = opening
    let behind = false
    /** Not what `client.more` says: a client that comes back from its socket begins with a short page, as it may not take more. */
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
      // What came was complete as of what the client had, not as of now: another page follows that has to be.
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

  /** A page, or undefined when it could not be had now. A sequence that is gone has ended. */
  async #page(after: number, fresh: number | undefined, long: boolean): Promise<Page | undefined> {
    const page = await this.#ask(after, fresh, long).catch(() => undefined)
    if (page === undefined || !isRefusal(page)) return page
    return page.refused === 'not_found'
      ? { items: [], last: after, more: false, ended: true, oldest: 0 }
      : undefined
  }

  #broadcast(items: readonly Item[]): void {
    if (items.length === 0) return
    const pieces = chunkFrames(items, this.#live.size > 1)
    for (const client of this.#live) {
      if (this.#give(client, pieces)) continue
      this.#live.delete(client)
      client.waiting = client.more = true
      this.#fallback()
    }
  }

  /** Write what the client lacks; false when it must drain first. */
  #give(client: Client, pieces: readonly Chunk[]): boolean {
    for (const piece of pieces) {
      if (piece.last <= client.sent) continue
      if (client.sink.full) return false
      const { content, items } = piece.first > client.sent ? piece : chunkAfter(piece, client.sent)
      client.sink.write(content)
      client.sent = piece.last
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
    return new Promise((resolve) =>
      this.#pause(PAUSES[Math.min(failures, PAUSES.length - 1)] ?? 0, resolve),
    )
  }
}
