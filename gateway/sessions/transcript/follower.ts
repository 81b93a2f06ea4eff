/**
 * One session for many clients: what changed after a cursor, every commit, and pieces of the model's text in between.
 *
 * Invariants:
 * G1. All joined clients have been given everything up to `#head`, and what streams exactly as `#live` has it: so one text of a
 *     change does for all of them.
 * G2. A client joins in one step with a page that reaches exactly `#head`, in cursor and revision. A page behind the head is
 *     sent, and the next one asked for; a page ahead of it first moves the head for all clients.
 * G3. An entry whose `prev` lies beyond the head shows a gap: the view is asked for what changed since. What was heard of is
 *     asked for by its cursor, so nothing falls between.
 * G4. A client that does not read, or has had its stream for long, is ended with `rotate` and comes back with its cursor:
 *     nothing is buffered, nothing skipped.
 * G5. `idle` is said when the view, asked anew, knows of no active turn either.
 */
import { lastCursor, type Placed } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { isFrame, rowIn, type SessionEvent } from '../../../protocol/sessions/events.ts'
import type {
  TranscriptPage,
  TranscriptQuestion,
} from '../../../protocol/sessions/transcript/pages.ts'
import type { Preview, Previewed } from '../../../protocol/sessions/transcript/previews.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import type { Sink } from '../../http/respond.ts'
import { begunOf, compacts, endsTurn, type Change, type Dialect, type End } from './change.ts'
import { LiveRows } from './live.ts'
import { readiness } from '../../streams/readable.ts'

/** What a follower needs to know of its session and the world. Milliseconds. */
export interface Ports {
  /** A page. `fresh`: it must contain everything up to this cursor; absent: everything committed by now. */
  ask(
    question: Omit<TranscriptQuestion, 'session_id'>,
    fresh?: number,
  ): Promise<TranscriptPage | Refusal>
  /** Everything that a row has shown so far, when somebody publishes it. */
  shown(message_id: string): Promise<Previewed | undefined>
  now(): number
  later(ms: number, run: () => void): () => void
  /** How long a stream lasts before its client is asked to come back. */
  readonly age: number
  /** Count a client that was too slow, and frames that were written. */
  slow(): void
  given(changes: number): void
}
interface Client {
  readonly sink: Sink
  readonly dialect: Dialect
  settled: boolean
  /** Turns of which it was shown, before it joined, that they began. */
  readonly begun: Set<string>
  /** Stops the wait for the end of an idle stream. */
  idle: (() => void) | undefined
}
interface Head {
  cursor: number
  revision: number
}

/** Things on a page, and rows of a transcript that is opened without a cursor. */
const [PAGE, NEWEST] = [200, 20]
/** Milliseconds between questions that fail: the last one repeats. */
const PAUSES = [50, 200, 500, 1000, 2000]

export class SessionFollower {
  readonly #ports: Ports
  readonly #live = new LiveRows()
  /** Every client, and those that have joined. */
  readonly #all = new Set<Client>()
  readonly #clients = new Set<Client>()
  /** Rows whose publisher is being asked. */
  readonly #seeking = new Map<string, { again: boolean; done: Promise<void> }>()
  readonly #active = new Set<string>()
  #compacting = false
  /** Those of them that have begun: everybody who has joined was shown that. */
  #begun = new Set<string>()
  #head: Head | undefined
  #heard = 0
  #doubt = false
  #pulling: Promise<void> | undefined
  #closed = false

  constructor(ports: Ports) {
    this.#ports = ports
  }
  get clients(): number {
    return this.#clients.size
  }
  /** Rows that stream, as far as they were shown. */
  get rows(): readonly TranscriptMessage[] {
    return this.#live.rows()
  }
  /** The first page of a client. */
  first(from: {
    readonly after?: number
    readonly after_sequence?: number
  }): Promise<TranscriptPage | Refusal> {
    return this.#ports.ask({
      ...from,
      limit: from.after === undefined && from.after_sequence === undefined ? NEWEST : PAGE,
    })
  }

  /** Give a client everything from its first page on. */
  async join(sink: Sink, dialect: Dialect, first: TranscriptPage): Promise<void> {
    const client: Client = {
      sink,
      dialect,
      settled: false,
      begun: new Set(),
      idle: undefined,
    }
    const readable = readiness(sink)
    this.#all.add(client)
    const old = this.#ports.later(this.#ports.age, () => this.#finish(client, 'rotate'))
    sink.onClose(() => {
      old()
      client.idle?.()
      this.#all.delete(client)
      this.#clients.delete(client)
    })
    for (
      let page: TranscriptPage | undefined = first, after = first.through, failures = 0;
      !sink.closed && !this.#closed;
    ) {
      if (page && !page.more) await this.#reach(page)
      await readable()
      if (sink.closed || this.#closed) return
      if (page) {
        const joins =
          !page.more && this.#head?.cursor === page.last && this.#head.revision === page.revision
        this.#catchUp(client, page, joins ? this.#live.rows() : [], client.begun)
        after = page.through
        if (joins) return this.#joined(client, page.revision)
      }
      const next: TranscriptPage | Refusal | undefined = await this.#ports
        .ask({ after, limit: PAGE }, page && !page.more ? this.#head?.cursor : undefined)
        .catch(() => undefined)
      page = next && !isRefusal(next) ? next : undefined
      if (page) failures = 0
      else await this.#sleep(failures++)
    }
  }
  #catchUp(
    client: Client,
    page: TranscriptPage,
    rows: readonly TranscriptMessage[],
    begun: ReadonlySet<string>,
  ): void {
    if (page.turns.some(({ record }) => settledTurns.has(record.status))) client.settled = true
    this.#ports.given(
      page.messages.length + page.turns.length + page.interactions.length + rows.length,
    )
    client.sink.write(client.dialect.caught({ page, rows, begun, at: this.#ports.now() }))
    if (!page.more) for (const id of begunOf(page)) client.begun.add(id)
  }
  #joined(client: Client, revision: number): void {
    client.sink.write(client.dialect.ready(revision))
    this.#clients.add(client)
    this.#settle()
  }
  /** Move the head to a page, or the page's reader behind it; then know what its rows have shown. */
  async #reach(page: TranscriptPage): Promise<void> {
    const head = this.#head
    // The newest part says nothing of what lies between it and the head.
    if (
      !head ||
      (page.last > head.cursor && page.after >= 0 && page.after <= head.revision && !this.#pulling)
    )
      this.#adopt(page)
    this.#heard = Math.max(this.#heard, page.last)
    while (this.#behind()) await this.notice(0)
    this.#seekAll()
    await Promise.all([...this.#seeking.values()].map(({ done }) => done))
  }

  /** A committed entry. */
  hear(placed: Placed): void {
    const last = lastCursor(placed)
    this.#heard = Math.max(this.#heard, last)
    const head = this.#head
    if (!head || this.#pulling || last <= head.cursor) return
    if (placed.stripped || placed.entry.prev > head.cursor) return void this.notice(last)
    const {
      events,
      origin: { at },
    } = placed.entry
    const changes: Change[] = []
    let summary: TranscriptMessage | undefined
    for (const event of events as readonly SessionEvent[]) {
      if (!isFrame(event)) {
        this.#compacting = compacts(event) ?? this.#compacting
        const row =
          event.type === 'call.noted'
            ? this.#live.rowOf(event.id)
            : event.type === 'compaction.created'
              ? summary
              : undefined
        changes.push({ kind: 'note', event, at, ...(row && { row }) })
        continue
      }
      const revision = ++head.revision
      const { row, void: again = false, completes } = this.#live.apply(event, revision)
      if (event.type === 'message.upsert' && event.role === 'compaction') summary = rowIn(event)
      const began = event.type === 'turn.upsert' && this.#begun.has(event.id)
      if (event.type === 'turn.upsert') this.#turn(event.id, event.status)
      changes.push({
        kind: 'frame',
        revision,
        frame: event,
        at,
        ...(row && { row, again }),
        ...(completes !== undefined && { completes }),
        ...(began && { began }),
      })
      if (again && row && event.type !== 'message.upsert')
        changes.push({ kind: 'row', row, again: false, at })
    }
    head.cursor = last
    this.#tell(changes)
    this.#settle()
  }
  /** Pieces of what models say. */
  preview(pieces: readonly Preview[]): void {
    if (!this.#head) return
    const changes: Change[] = []
    for (const preview of pieces) {
      const { as, appended, reset } = this.#live.hear(preview)
      if (as === 'hole') void this.#seek(preview.message_id)
      if (as !== 'shown') continue
      if (reset) changes.push({ kind: 'row', row: reset, again: true, at: preview.at })
      changes.push({ kind: 'piece', preview, ...(appended && { appended }) })
    }
    this.#tell(changes)
  }
  /** Everything up to a cursor is committed: resolves when it was fetched. */
  notice(cursor: number): Promise<void> {
    this.#heard = Math.max(this.#heard, cursor)
    return (this.#pulling ??= this.#pull().finally(() => {
      this.#pulling = undefined
    }))
  }
  /** Entries may have been lost: ask whether there is anything new. */
  async check(): Promise<void> {
    this.#doubt = true
    while (this.#behind()) await this.notice(0)
  }
  #behind(): boolean {
    return (
      this.#head !== undefined && !this.#closed && (this.#heard > this.#head.cursor || this.#doubt)
    )
  }
  /** End every client; they come back with their cursors. */
  stop(): void {
    this.#closed = true
    for (const client of [...this.#all]) this.#finish(client, 'rotate')
  }

  /** Bring the head to what was heard of. */
  async #pull(): Promise<void> {
    for (let failures = 0; this.#head && this.#behind(); ) {
      const heard = this.#heard
      const doubt = this.#doubt
      this.#doubt = false
      const page = await this.#ports
        .ask({ after: this.#head.revision, limit: PAGE }, doubt ? undefined : heard)
        .catch(() => undefined)
      if (!page || isRefusal(page)) {
        this.#doubt ||= doubt
        await this.#sleep(failures++)
        continue
      }
      failures = 0
      this.#adopt(page)
      if (page.more) this.#doubt ||= doubt
      else if (!doubt) this.#head.cursor = Math.max(this.#head.cursor, heard)
    }
    this.#seekAll()
    this.#settle()
  }
  /** Take a page for the new head; who has joined is given what it has beyond. */
  #adopt(page: TranscriptPage): void {
    const before = this.#head
    if (before && !page.more && page.last <= before.cursor) return
    this.#head = {
      cursor: page.more ? (before?.cursor ?? 0) : page.last,
      revision: Math.max(page.through, before?.revision ?? 0),
    }
    for (const { revision, record } of page.messages)
      this.#live.apply({ type: 'message.upsert', ...record }, revision)
    for (const { revision, record } of page.turns)
      this.#live.apply({ type: 'turn.upsert', ...record }, revision)
    const begun = this.#begun
    if (!page.more) {
      this.#begun = new Set(begunOf(page))
      this.#active.clear()
      this.#compacting = false
      for (const { record } of page.active) this.#active.add(record.id)
      this.#live.set(page.live)
    }
    if (!before || this.#clients.size === 0) return
    const beyond = <T extends { readonly revision: number }>(all: readonly T[]): readonly T[] =>
      all.filter(({ revision }) => revision > before.revision)
    const rest = {
      ...page,
      after: Math.max(0, before.revision),
      messages: beyond(page.messages),
      turns: beyond(page.turns),
      interactions: beyond(page.interactions),
    }
    for (const client of [...this.#clients]) {
      if (client.sink.full) this.#cut(client)
      else this.#catchUp(client, rest, page.more ? [] : this.#live.rows(), begun)
    }
  }
  /** Ask for everything a row has shown. One question at a time; a hole that is noticed meanwhile asks once more, for the answer may be older. */
  #seek(id: string): Promise<void> {
    const under = this.#seeking.get(id)
    if (under) {
      under.again = true
      return under.done
    }
    const seeking = { again: false, done: Promise.resolve() }
    this.#seeking.set(id, seeking)
    seeking.done = this.#sought(id, seeking).finally(() => this.#seeking.delete(id))
    return seeking.done
  }
  #seekAll(): void {
    for (const id of this.#live.unsought()) void this.#seek(id)
  }
  async #sought(id: string, seeking: { again: boolean }): Promise<void> {
    do {
      seeking.again = false
      const shown = await this.#ports.shown(id).catch(() => undefined)
      const taken = shown && this.#live.take(shown)
      if (taken) this.#tell([{ kind: 'row', ...taken, at: this.#ports.now() }])
    } while (seeking.again && !this.#closed)
  }

  #turn(id: string, status: string): void {
    const over = settledTurns.has(status)
    this.#active[over ? 'delete' : 'add'](id)
    if (status !== 'queued') this.#begun[over ? 'delete' : 'add'](id)
  }
  /** Write changes to everybody who has joined: one text for each dialect. */
  #tell(changes: readonly Change[]): void {
    if (this.#clients.size === 0 || changes.length === 0) return
    const ended = changes.some(endsTurn)
    const texts = new Map<Dialect, string>()
    for (const client of [...this.#clients]) {
      if (ended) client.settled = true
      let text = texts.get(client.dialect)
      if (text === undefined)
        texts.set(
          client.dialect,
          (text = changes.map((change) => client.dialect.change(change)).join('')),
        )
      if (text === '') continue
      if (client.sink.full) this.#cut(client)
      else client.sink.write(text)
    }
    this.#ports.given(changes.length * this.#clients.size)
  }
  #cut(client: Client): void {
    this.#ports.slow()
    this.#finish(client, 'rotate')
  }
  #finish(client: Client, reason: End): void {
    if (client.sink.closed) return
    client.sink.write(client.dialect.end(reason))
    client.sink.end()
  }

  /** Nothing is under way: clients are let go after their patience. Something is: they stay. */
  #settle(): void {
    for (const client of this.#clients) {
      if (this.#keeps(client)) {
        client.idle?.()
        client.idle = undefined
      } else
        client.idle ??= this.#ports.later(
          client.dialect.patience(client.settled),
          () => void this.#idle(client),
        )
    }
  }
  /** A client that waits for turns is shown the end of a compaction; one that saw its turn end waits for nothing. */
  #keeps = ({ settled }: Client) => this.#active.size > 0 || (this.#compacting && !settled)
  async #idle(client: Client): Promise<void> {
    await this.check()
    client.idle = undefined
    if (this.#clients.has(client) && !this.#keeps(client)) this.#finish(client, 'idle')
  }
  #sleep(failures: number): Promise<void> {
    const pause = PAUSES[Math.min(failures, PAUSES.length - 1)] ?? 0
    return new Promise((resolve) => this.#ports.later(pause, resolve))
  }
}
