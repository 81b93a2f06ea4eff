/**
 * A session under simulated faults. The view lags. Entries and deltas are lost, repeated and
 * delayed. Publishers answer late. Clients of two gateways read slowly, lose their connections and
 * reconnect to either gateway.
 */
import { Transcript, type TranscriptFrame } from '../../../client/transcript/fold.ts'
import type { Sink } from '../../../gateway/http/respond.ts'
import type { Dialect } from '../../../gateway/sessions/transcript/change.ts'
import { queryUntilCurrent } from '../../../gateway/sessions/transcript/followed.ts'
import { SessionFollower } from '../../../gateway/sessions/transcript/follower.ts'
import { openPreviews } from '../../../gateway/sessions/transcript/previews.ts'
import { snapshot } from '../../../gateway/sessions/transcript/snapshot.ts'
import { sealTranscriptCursor } from '../../../gateway/sessions/transcript/transcript-cursor.ts'
import { numberedDialect } from '../../../gateway/sessions/transcript/v1.ts'
import { transcriptDialect } from '../../../gateway/sessions/transcript/v2.ts'
import {
  cursorOf,
  type Envelope,
  lastCursor,
  type PlacedEntry,
  placeEntries,
  sequenceOf,
} from '../../../protocol/entry.ts'
import { isRefusal, refuse } from '../../../protocol/errors.ts'
import type { TranscriptSnapshot } from '../../../protocol/sessions/schema.ts'
import type { TranscriptQuestion } from '../../../protocol/sessions/transcript/pages.ts'
import type { Preview, Previewed } from '../../../protocol/sessions/transcript/previews.ts'
import { View } from '../../../views/view.ts'
import { Story } from '../../actors/sessions/story.ts'
import { seal } from '../support/given.ts'

const SESSION = 'ses_01AAAAAAAAAAAAAAAAAAAAAA0C'
const PROJECT = 'prj_1'
type Open = Record<string, unknown>
/**
 * Timers longer than this number of milliseconds fire only when the history triggers them. Shorter
 * ones are pauses between retries.
 */
const LONG_TIMER_MS = 2000

/**
 * A received frame. `calm` is true if the faults had stopped before the gateway wrote the frame,
 * and all queries that began during the faults had ended.
 */
interface Arrived {
  readonly id?: string
  readonly data: TranscriptFrame
  readonly calm: boolean
}
const arrived = (text: string, calm: boolean): Arrived[] =>
  text
    .split('\n\n')
    .filter((frame) => frame.includes('data: '))
    .map((frame) => {
      const [, id] = /^id: (.*)$/m.exec(frame) ?? []
      return {
        ...(id !== undefined && { id }),
        calm,
        data: JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '') as TranscriptFrame,
      }
    })

export interface Client {
  readonly version: Dialect['name']
  readonly transcript: Transcript
  /** Version 1: the message numbers in received frames, across all connections. */
  readonly numbers: number[]
  readonly inbox: Arrived[]
  /** Version 2: the frame ids of the current connection. */
  ids: string[]
  connected: boolean
  /**
   * Whether the stream ended with the reason `idle` in a calm frame. Such a client is not
   * reconnected by `rest`.
   */
  idle: boolean
  opening: boolean
  close: () => void
  drain: () => void
  connections: number
}

export class Meeting {
  readonly story = new Story()
  readonly pending: (() => void)[] = []
  readonly clients: Client[] = []
  readonly #choose: (below: number) => number
  readonly #view = View.open(':memory:')
  readonly #journal: { readonly sequence: number; readonly data: Envelope }[] = []
  readonly #gateways: {
    readonly follower: SessionFollower
    readonly dialects: Record<Dialect['name'], Dialect>
    readonly early: Set<object>
  }[]
  readonly #asked = new Map<string, Set<() => Previewed | undefined>>()
  readonly #timers = new Set<() => void>()
  readonly #previews
  #read = 0
  #prev = 0
  #clock = 1
  #said = 0
  /** Whether messages may be lost and repeated, and queries may fail. */
  lossy = true

  constructor(choose: (below: number) => number) {
    this.#choose = choose
    const later = (ms: number, run: () => void): (() => void) => this.#later(ms, run)
    this.#previews = openPreviews({
      ask: async (_: unknown, name: string, input: unknown) =>
        this.#slowly(() => (this.story.session.ask(name, input) ?? null) as never),
      now: () => this.#clock++,
      monotonic: () => this.#clock,
      later,
      preview: (_, __, pieces) => this.#spread(pieces),
      onPreviewed: (_, message, answer) => {
        const set = this.#asked.get(message) ?? new Set()
        this.#asked.set(message, set.add(answer))
        return () => void set.delete(answer)
      },
    })
    this.#gateways = [new Set<object>(), new Set<object>()].map((early) => ({
      early,
      follower: new SessionFollower({
        ask: (question, fresh) => this.#ask({ session_id: 'ses_1', ...question }, early, fresh),
        shown: (message) => this.#shown(message),
        now: () => this.#clock,
        later,
        age: 55_000,
        countFallback() {},
        countSent() {},
      }),
      dialects: {
        v1: numberedDialect('ses_1', 5000),
        v2: transcriptDialect('ses_1', (revision) => this.seal(revision), 5000),
      },
    }))
  }
  seal(revision: number): string {
    return sealTranscriptCursor({ seal }, PROJECT, SESSION, revision)
  }
  #later(ms: number, run: () => void): () => void {
    let over = false
    const once = () => {
      if (!over) {
        over = true
        this.#timers.delete(once)
        run()
      }
    }
    if (ms > LONG_TIMER_MS) this.#timers.add(once)
    else this.pending.push(once)
    return () => {
      over = true
      this.#timers.delete(once)
    }
  }
  #slowly<T>(make: () => T): Promise<T> {
    return new Promise((resolve) =>
      this.pending.push(() => {
        const answer = make()
        this.pending.push(() => resolve(answer))
      }),
    )
  }

  /**
   * Commits the new events of the story. While `lossy`, each gateway receives the entry zero to two
   * times; otherwise once.
   */
  commit(): void {
    const events = this.story.log.slice(this.#read)
    this.#read = this.story.log.length
    if (events.length === 0) return
    const sequence = this.#journal.length + 1
    const entry = {
      project: PROJECT,
      kind: 'session' as const,
      id: 'ses_1',
      command: { id: `c${sequence}`, name: 'x' },
      origin: { at: this.story.at, principal: { type: 'user' as const, id: 'user_1' } },
      events,
      prev: this.#prev,
    }
    this.#prev = cursorOf(sequence, events.length - 1)
    const data: Envelope = { v: 1, epoch: 1, prev: sequence - 1, entries: [entry] }
    this.#journal.push({ sequence, data })
    const [place] = placeEntries(sequence, data) as [PlacedEntry]
    const shown: PlacedEntry =
      this.#choose(12) === 0
        ? {
            ...place,
            entry: { ...place.entry, events: events.map(({ type }) => ({ type })) },
            stripped: true,
          }
        : place
    for (const { follower } of this.#gateways)
      for (let n = this.lossy ? this.#choose(5) % 3 : 1; n > 0; n--)
        this.pending.push(() => follower.hear(shown))
    // The job of a message ends when the message is final.
    for (const job of events.flatMap((event) =>
      event.type === 'message.upsert' && event.status === 'final' ? [event.id] : [],
    ))
      this.#previews.end(job)
  }
  #apply(to: number): void {
    this.#view.apply(
      this.#journal.filter(({ sequence }) => sequence > this.#view.position() && sequence <= to),
    )
  }
  /**
   * Queries the view, with retries.
   * @param early the queries of the gateway that began while faults occurred. A query is removed
   *   when its answer has been processed.
   * @param fresh the cursor up to which the answer must be complete.
   */
  #ask(
    question: TranscriptQuestion,
    early: Set<object>,
    fresh?: number,
  ): ReturnType<SessionFollower['first']> {
    if (this.lossy) early.add(question)
    return queryUntilCurrent(
      () => this.#answered(question, fresh),
      (ms) => new Promise((resolve) => this.#later(ms, resolve)),
    ).finally(() => setImmediate(() => early.delete(question)))
  }
  #answered(question: TranscriptQuestion, fresh?: number): ReturnType<SessionFollower['first']> {
    const failure = this.lossy ? this.#choose(12) : 0
    const limit = 1 + this.#choose(6)
    // A query without a cursor may miss the newest entries, because a former leader may report an
    // earlier end of the journal. With a cursor, the view waits until it has applied the data up to
    // the cursor.
    const needed =
      fresh === undefined
        ? this.lossy && this.#choose(3) === 0
          ? this.#choose(this.#journal.length + 1)
          : this.#journal.length
        : sequenceOf(fresh)
    return this.#slowly(() => {
      if (failure === 10) return refuse('service_unavailable')
      this.#apply(
        Math.max(this.#view.position(), needed, this.#choose(2) === 0 ? this.#journal.length : 0),
      )
      return this.#view.ask('session.transcript', PROJECT, {
        ...question,
        limit: question.after === undefined && question.after_sequence === undefined ? 20 : limit,
      }) as never
    }).then((answer) => {
      if (failure === 11) throw new Error('nobody answers')
      return answer
    })
  }
  #shown(message: string): Promise<Previewed | undefined> {
    const lost = this.lossy && this.#choose(6) === 0
    return this.#slowly(() =>
      lost
        ? undefined
        : [...(this.#asked.get(message) ?? [])]
            .map((answer) => answer())
            .find((whole) => whole !== undefined),
    )
  }
  #spread(pieces: readonly Preview[]): void {
    for (const { follower } of this.#gateways)
      for (let n = this.lossy ? this.#choose(6) % 3 : 1; n > 0; n--)
        this.pending.push(() => follower.preview(pieces))
  }
  speak(what: number, attempt = 0): void {
    const job = [...this.story.jobs.values()].find(({ kind }) => kind === 'llm_generation')
    if (!job) return
    const delta =
      what % 5 === 0
        ? { type: 'thinking', thinking: `think ${what} ` }
        : what % 11 === 0
          ? { type: 'odd', what }
          : { text: `word ${what} ` }
    this.#previews.publish(
      { project: PROJECT, session_id: 'ses_1', job_id: job.id, attempt: `a${attempt}` },
      delta,
      this.#said++,
    )
  }

  client(version: Dialect['name'], from: 'start' | 'newest'): Client {
    const client: Client = {
      version,
      transcript: new Transcript(from === 'start' ? this.seal(0) : undefined),
      numbers: [],
      inbox: [],
      ids: [],
      connected: false,
      idle: false,
      opening: false,
      close: () => {},
      drain: () => {},
      connections: 0,
    }
    this.clients.push(client)
    return client
  }
  /** Connects a client to gateway `at % 2`, from the client's last position. */
  async connect(client: Client, at: number): Promise<void> {
    if (client.connected || client.opening) return
    const gateway = this.#gateways[at % 2]
    if (!gateway) return
    client.opening = true
    const { cursor } = client.transcript
    const after =
      cursor === undefined ? undefined : (this.#revisions.get(cursor) ?? this.#open(cursor))
    const first = await gateway.follower
      .first(
        client.version === 'v1'
          ? { after_sequence: client.numbers.at(-1) ?? 0 }
          : after === undefined
            ? {}
            : { after },
      )
      .catch(() => refuse('service_unavailable'))
    client.opening = false
    if (isRefusal(first)) return
    let closed = false
    let onDrain = () => {}
    const closers: (() => void)[] = []
    client.connected = true
    client.connections++
    client.ids = []
    client.inbox.length = 0
    client.transcript.begin()
    client.drain = () => onDrain()
    const close = () => {
      if (closed) return
      closed = true
      for (const run of closers.splice(0)) run()
    }
    client.close = () => {
      client.connected = false
      client.inbox.length = 0
      close()
    }
    const sink: Sink = {
      write: (piece) => {
        if (!closed)
          client.inbox.push(
            ...arrived(Buffer.from(piece).toString(), !this.lossy && gateway.early.size === 0),
          )
      },
      get full() {
        return client.inbox.length > 12
      },
      get closed() {
        return closed
      },
      onDrain: (run) => {
        onDrain = run
      },
      onClose: (run) => void closers.push(run),
      end: close,
    }
    void gateway.follower.join(sink, gateway.dialects[client.version], first)
  }
  readonly #revisions = new Map<string, number>()
  #open(cursor: string): number {
    for (let revision = 0; ; revision++) {
      this.#revisions.set(this.seal(revision), revision)
      if (this.seal(revision) === cursor) return revision
      if (revision > 100_000) throw new Error(`${cursor} is the cursor of no revision`)
    }
  }
  read(client: Client, many: number): void {
    for (const { id, data, calm } of client.inbox.splice(0, many)) {
      if (id !== undefined) this.#place(client, id)
      if (client.version === 'v2') client.transcript.apply(data, id)
      if (data.event_type !== 'stream.end') continue
      client.idle = calm && data['reason'] === 'idle'
      client.close()
      return
    }
    if (client.inbox.length <= 2) client.drain()
  }
  #place(client: Client, id: string): void {
    if (client.version === 'v1') return void client.numbers.push(Number(id))
    const [before, now] = [client.ids.at(-1), this.#revisions.get(id) ?? this.#open(id)]
    if (before !== undefined && now < (this.#revisions.get(before) ?? 0))
      throw new Error('a place went back')
    client.ids.push(id)
  }
  async step(): Promise<void> {
    const [run] = this.pending.splice(this.#choose(this.pending.length), 1)
    run?.()
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  expire(): void {
    const all = [...this.#timers]
    all[this.#choose(all.length)]?.()
  }
  /**
   * Stops the faults and runs all pending actions. Clients reconnect and read everything.
   * @throws {Error} when actions never end.
   */
  async rest(): Promise<void> {
    this.lossy = false
    for (const client of this.clients) client.idle = false
    for (let turns = 0, quiet = 0, looks = 0; quiet < 3; turns++) {
      if (turns > 3000) throw new Error('does not come to rest')
      for (const client of this.clients) {
        if (!client.connected && !client.idle) void this.connect(client, turns)
        this.read(client, 100)
      }
      quiet = this.pending.length > 0 ? 0 : quiet + 1
      if (quiet === 3 && looks++ < 2) {
        // Simulates the periodic check of the followers of each gateway.
        for (const { follower } of this.#gateways) void follower.check()
        quiet = 0
      }
      for (const run of this.pending.splice(0)) run()
      await new Promise<void>((resolve) => setImmediate(resolve))
    }
  }
  /** Returns a new transcript, loaded from pages. */
  async fresh(): Promise<Transcript> {
    const world = {
      seal,
      view: async (_: string, name: string, input: object) => {
        this.#apply(this.#journal.length)
        return this.#view.ask(name, PROJECT, { ...input, session_id: 'ses_1' })
      },
      previewed: async (_: string, message: string) =>
        [...(this.#asked.get(message) ?? [])]
          .map((answer) => answer())
          .find((whole) => whole !== undefined),
    }
    const transcript = new Transcript(this.seal(0))
    for (let token: string | undefined, more = true; more; ) {
      const call = {
        project: { id: PROJECT },
        slots: { session_id: SESSION },
        query: {
          limit: 3,
          ...(token === undefined ? { cursor: this.seal(0) } : { page_token: token }),
        },
      }
      const page = (await snapshot({ world } as never, call as never)) as TranscriptSnapshot
      if (isRefusal(page)) throw new Error(JSON.stringify(page))
      transcript.page(page)
      more = page.has_more
      token = page.next_page_token
    }
    return transcript
  }
  /** Returns the numbers of the final messages, in commit order. */
  numbers(): number[] {
    return this.story.log.flatMap((event) =>
      event.type === 'message.upsert' && event.status === 'final' && event.sequence !== null
        ? [event.sequence]
        : [],
    )
  }
  last(): number {
    return lastCursor(
      placeEntries(this.#journal.length, this.#journal.at(-1)?.data as Envelope)[0] as PlacedEntry,
    )
  }
  close(): void {
    this.#view.close()
  }
}
/** Returns the parts of a transcript that are compared. */
export const kept = (transcript: Transcript): Open => ({
  rows: transcript.messages(),
  turns: [...transcript.turns.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
  pending: transcript.pending().sort((a, b) => (a.id < b.id ? -1 : 1)),
})
