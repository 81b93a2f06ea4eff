/**
 * Follows one session for many clients. A client first receives the changes after its cursor. Then
 * it receives every commit, and chunks of model output in between. The stream formats are in
 * `v1.ts` and `v2.ts`, and the subscriptions are in `followed.ts`.
 *
 * Invariants:
 * G1. Every joined client has received everything up to `#head`, and its streaming rows equal
 *     `#live`, so all joined clients with the same format receive the same text for a change.
 * G2. A client joins in one synchronous step, with a page that ends exactly at the cursor and the
 *     revision of `#head`. After a page that ends before the head, the next page is fetched. A page
 *     that ends after the head first advances the head for all clients.
 * G3. An entry whose `prev` is greater than the head reveals a gap. The view is then queried for
 *     the changes since the head, up to the highest cursor received, so no entry is skipped.
 * G4. The stream of a client that does not read, or that has been connected for `Ports.age`, ends
 *     with `rotate`, and the client reconnects with its cursor. The amount of buffered data is
 *     therefore bounded, and nothing is skipped.
 * G5. `idle` is sent only after another query to the view has confirmed that the client has nothing
 *     to wait for.
 */
import { lastCursor, type PlacedEntry } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { isFrame, rowIn, type SessionEvent } from '../../../protocol/sessions/events.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { TranscriptPage } from '../../../protocol/sessions/transcript/pages.ts'
import type { Preview } from '../../../protocol/sessions/transcript/previews.ts'
import type { Sink } from '../../http/respond.ts'
import { pauseMs } from '../../streams/follow.ts'
import { readiness } from '../../streams/readable.ts'
import { sleep } from '../../timing.ts'
import {
  begunTurns,
  type Change,
  type Dialect,
  type End,
  endsTurn,
  isCompacting,
} from './change.ts'
import type { Client, Head, Ports } from './follower-ports.ts'
import { LiveRows } from './live.ts'
import { PreviewFetches } from './preview-fetches.ts'

/** Maximum number of items on a page. */
const PAGE = 200
/** Maximum number of rows on the first page of a transcript that is opened without a cursor. */
const NEWEST = 20

export class SessionFollower {
  readonly #ports: Ports
  readonly #live = new LiveRows()
  /** All clients. */
  readonly #all = new Set<Client>()
  /** The clients that have joined. */
  readonly #clients = new Set<Client>()
  readonly #fetches = new PreviewFetches((id) => this.#fetchPreview(id))
  readonly #active = new Set<string>()
  #compacting = false
  /** The active turns whose start every joined client has received. */
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
  /** The streaming rows, with their content so far. */
  get rows(): readonly TranscriptMessage[] {
    return this.#live.rows()
  }
  /**
   * Fetches the first page for a client: the page after a revision or a message number, or else the
   * newest part of the transcript.
   */
  first(from: {
    readonly after?: number
    readonly after_sequence?: number
  }): Promise<TranscriptPage | Refusal> {
    return this.#ports.ask({
      ...from,
      limit: from.after === undefined && from.after_sequence === undefined ? NEWEST : PAGE,
    })
  }

  /**
   * Adds a client, and sends it the first page and everything after it. Resolves when the client
   * has joined or its stream has ended.
   */
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
    tail = false,
  ): void {
    if (page.turns.some(({ record }) => settledTurns.has(record.status))) client.settled = true
    this.#ports.countSent(
      page.messages.length + page.turns.length + page.interactions.length + rows.length,
    )
    client.sink.write(client.dialect.caught({ page, rows, begun, at: this.#ports.now(), tail }))
    if (!page.more) for (const id of begunTurns(page)) client.begun.add(id)
  }
  #joined(client: Client, revision: number): void {
    client.sink.write(client.dialect.ready(revision))
    this.#clients.add(client)
    this.#updateIdleTimers()
  }
  /**
   * Advances the head to a page that is ahead of it, and then fetches the previews of the streaming
   * rows.
   */
  async #reach(page: TranscriptPage): Promise<void> {
    const head = this.#head
    // If there is a head, a page of the newest part (`after` −1) is not adopted, because it lacks
    // the changes between the head and the beginning of the page.
    if (
      !head ||
      (page.last > head.cursor && page.after >= 0 && page.after <= head.revision && !this.#pulling)
    )
      this.#adopt(page)
    this.#heard = Math.max(this.#heard, page.last)
    while (this.#behind()) await this.notice(0)
    this.#fetchMissing()
    await this.#fetches.drain()
  }

  /** Handles a committed entry of the session. */
  hear(placed: PlacedEntry): void {
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
        this.#compacting = isCompacting(event) ?? this.#compacting
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
      if (event.type === 'turn.upsert') this.#noteTurn(event.id, event.status)
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
    this.#send(changes)
    this.#updateIdleTimers()
  }
  /** Sends chunks of model output. If chunks of a row are missing, fetches the row's preview. */
  preview(chunks: readonly Preview[]): void {
    if (!this.#head) return
    const changes: Change[] = []
    for (const preview of chunks) {
      const { as, appended, reset } = this.#live.hear(preview)
      if (as === 'hole') this.#fetches.start(preview.message_id)
      if (as !== 'shown') continue
      if (reset) changes.push({ kind: 'row', row: reset, again: true, at: preview.at })
      changes.push({ kind: 'piece', preview, appended })
    }
    this.#send(changes)
  }
  /**
   * Handles a notification that everything up to a cursor is committed. Resolves when the follower
   * has queried the view up to this cursor.
   */
  notice(cursor: number): Promise<void> {
    this.#heard = Math.max(this.#heard, cursor)
    return (this.#pulling ??= this.#pull().finally(() => {
      this.#pulling = undefined
    }))
  }
  /** Queries the view for changes, because live entries may have been lost. */
  async check(): Promise<void> {
    this.#doubt = true
    while (this.#behind()) await this.notice(0)
  }
  #behind(): boolean {
    return (
      this.#head !== undefined && !this.#closed && (this.#heard > this.#head.cursor || this.#doubt)
    )
  }
  /** Ends the streams of all clients with `rotate`, so that they reconnect with their cursors. */
  stop(): void {
    this.#closed = true
    this.#fetches.stop()
    for (const client of [...this.#all]) this.#finish(client, 'rotate')
  }

  /** Queries the view until the head has reached the highest cursor received. */
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
    this.#fetchMissing()
    this.#updateIdleTimers()
  }
  /**
   * Advances the head to the end of a page, and sends the joined clients those changes in the page
   * that follow the old head.
   */
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
      this.#begun = new Set(begunTurns(page))
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
      if (client.sink.full) this.#disconnectSlow(client)
      else this.#catchUp(client, rest, page.more ? [] : this.#live.rows(), begun, true)
    }
  }
  /** Fetches the previews of rows whose chunks may have been published before the subscription. */
  #fetchMissing(): void {
    for (const id of this.#live.unsought()) this.#fetches.start(id)
  }
  async #fetchPreview(id: string): Promise<void> {
    const shown = await this.#ports.shown(id).catch(() => undefined)
    const taken = shown && this.#live.take(shown)
    if (taken) this.#send([{ kind: 'row', ...taken, at: this.#ports.now() }])
  }

  #noteTurn(id: string, status: string): void {
    const over = settledTurns.has(status)
    this.#active[over ? 'delete' : 'add'](id)
    if (status !== 'queued') this.#begun[over ? 'delete' : 'add'](id)
  }
  /** Writes changes to all joined clients, with one text per stream format. */
  #send(changes: readonly Change[]): void {
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
      if (client.sink.full) this.#disconnectSlow(client)
      else client.sink.write(text)
    }
    this.#ports.countSent(changes.length * this.#clients.size)
  }
  #disconnectSlow(client: Client): void {
    this.#ports.countFallback()
    this.#finish(client, 'rotate')
  }
  #finish(client: Client, reason: End): void {
    if (client.sink.closed) return
    client.sink.write(client.dialect.end(reason))
    client.sink.end()
  }

  /**
   * Starts the idle timer of each joined client that has nothing to wait for, and stops the timers
   * of the other clients.
   */
  #updateIdleTimers(): void {
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
  /**
   * Returns whether a client has something to wait for: an active turn or, if the client has not
   * received the end of a turn, a compaction.
   */
  #keeps = ({ settled }: Client) => this.#active.size > 0 || (this.#compacting && !settled)
  async #idle(client: Client): Promise<void> {
    await this.check()
    client.idle = undefined
    if (this.#clients.has(client) && !this.#keeps(client)) this.#finish(client, 'idle')
  }
  #sleep(failures: number): Promise<void> {
    return sleep(this.#ports, pauseMs(failures))
  }
}
