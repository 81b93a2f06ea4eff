/**
 * Notifies the clients of this gateway when records of a project have changed.
 *
 * The source is the view of the project's partition. While gateways query for changes, the view
 * keeps a list of changed records in memory. A query waits until the view has applied a new event.
 * Shard owners publish nothing for this topic, so it adds no cost to the execution of runs. The
 * announcements of shard owners (`live`, `moved`) are not sufficient: they cover only some kinds of
 * actors, may be lost, and each would be sent to every gateway. A view applies all changes of its
 * partition in order, so a position is enough to detect missed changes.
 *
 * Invariants:
 * K1. A client receives a change, or the kind `*`, for every record that it may read and that
 *     changed after its cursor. The kind `*` is sent when the view lacks some changes since the
 *     cursor, because it has restarted or too many records have changed, when the journal ends
 *     before the cursor, and when the permissions of the client have changed.
 * K2. A client receives at most one frame per `PAUSE_MS`.
 * K3. A client receives the id of a record only if it may read the record, or if its own access to
 *     the record has changed. For a record that no longer exists, it receives only the kind.
 * K4. A client that does not read is skipped until its socket has drained. Nothing is buffered.
 */
import type { Viewer } from '../../../protocol/channels/schema.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import {
  type ClosableKind,
  changeKinds,
  closableKinds,
  type RecordChange,
} from '../../../protocol/streams/changes.ts'
import type { Caller } from '../../auth/authenticate.ts'
import { authorizeRow } from '../../auth/authorize.ts'
import { namesOf } from '../../auth/people.ts'
import { viewerOf } from '../../auth/viewer.ts'
import { type Call, type Edge, rows, scopeId } from '../../call.ts'
import type { Sink } from '../../http/respond.ts'
import { sleep } from '../../timing.ts'
import { MAX_WAIT_MS, pauseMs } from '../follow.ts'
import { openFollowerPool } from '../follower-pool.ts'
import { frame } from '../sse.ts'
import type { OpenedSequence } from '../stream.ts'

/** Minimum time in milliseconds between two frames of a client. */
const PAUSE_MS = 250
/**
 * Maximum number of records that a frame lists by id. If there are more, it lists only their kinds.
 */
const MAX_RECORDS = 200

type Page = ViewQueries['changes']['reply']
type Change = Page['items'][number]
interface Client {
  readonly sink: Sink
  readonly call: Call
  sent: number
  /** The permissions that the client had when it was last served; see K1. */
  permissions: string
}
/** A client, with the identity and the permissions that it has when a page is sent. */
interface Reader {
  readonly client: Client
  readonly viewer: Viewer
  readonly names: readonly string[]
  may(kind: string): boolean
  readonly permissions: string
}

const closable: ReadonlySet<string> = new Set(closableKinds)
const permissionsOf = ({ permissions }: Caller): string => [...permissions].sort().join(' ')

class ChangeFollower {
  readonly #edge: Edge
  readonly #project: string
  readonly #clients = new Set<Client>()
  #running = false

  constructor(edge: Edge, project: string) {
    this.#edge = edge
    this.#project = project
  }
  /** Fetches the changes after a cursor; without one, only the current position. */
  ask(after = Number.MAX_SAFE_INTEGER, fresh?: number): Promise<Page | Refusal> {
    const { world } = this.#edge
    return world
      .view(this.#project, 'changes', { of: this.#project, after }, fresh, MAX_WAIT_MS)
      .catch(() => refuse('service_unavailable'))
  }
  /** Adds a client that has received everything up to a cursor. */
  join(sink: Sink, call: Call, sent: number): void {
    const client = { sink, call, sent, permissions: permissionsOf(call.caller) }
    this.#clients.add(client)
    sink.onClose(() => this.#clients.delete(client))
    if (!this.#running) void this.#run()
  }
  /** Does nothing: each query contains the positions of the clients, so no change can be missed. */
  check(): void {}

  async #run(): Promise<void> {
    const { world } = this.#edge
    this.#running = true
    for (let failures = 0; this.#clients.size > 0; ) {
      const due = [...this.#clients].filter(({ sink }) => !sink.full)
      const after = Math.min(...due.map(({ sent }) => sent))
      // The view answers once it has applied an event after the position `after`.
      const page = due.length > 0 ? await this.ask(after, after + 1) : undefined
      const delivered = page && !isRefusal(page) && (await this.#deliver(due, page))
      if (delivered) failures = 0
      await sleep(world, page && !delivered ? Math.max(PAUSE_MS, pauseMs(failures++)) : PAUSE_MS)
    }
    this.#running = false
  }
  /** Sends a page to the clients. Returns false when the page must be fetched again. */
  async #deliver(due: readonly Client[], page: Page): Promise<boolean> {
    const { items, last, floor } = page
    const behind = due.filter(
      ({ sent }) => sent < floor || items.some(({ cursor }) => cursor > sent),
    )
    const readers = await Promise.all(behind.map((client) => this.#reader(client)))
    const known = readers.filter((reader) => reader !== undefined)
    const readable = await this.#readable(items, known, last)
    if (!readable) return false
    for (const [index, reader] of known.entries()) {
      const { client } = reader
      const changes =
        reader.permissions !== client.permissions || client.sent < floor
          ? [{ kind: '*' }]
          : shown(
              items.filter(({ cursor }) => cursor > client.sent),
              reader,
              (change) => readable(change, index),
            )
      if (changes.length > 0) client.sink.write(frame('changes', { changes }, last))
      client.permissions = reader.permissions
    }
    // A client whose caller could not be looked up receives these changes with a later page.
    const skipped = new Set(behind.filter((_, index) => !readers[index]))
    for (const client of due) if (!skipped.has(client)) client.sent = Math.max(client.sent, last)
    return true
  }
  async #reader(client: Client): Promise<Reader | undefined> {
    const { authentication, world } = this.#edge
    const { call } = client
    const caller = await authentication.again(call.caller)
    if (isRefusal(caller)) return undefined
    const names = call.project ? await namesOf(this.#edge, this.#project, caller) : []
    if (isRefusal(names)) return undefined
    const kinds = changeKinds[call.project ? 'project' : 'organization']
    return {
      client,
      viewer: viewerOf(caller),
      names,
      permissions: permissionsOf(caller),
      may: (kind) => {
        const row = rows[getOwn(kinds, kind) ?? '']
        return row !== undefined && !authorizeRow(world.settings.brand, row.shape, caller, {})
      },
    }
  }
  /**
   * Determines which readers may receive the ids of the changed records. Returns a predicate that
   * takes a change and the index of a reader. The predicate returns undefined for a record that no
   * longer exists. Returns undefined instead of a predicate if the view does not answer in time.
   */
  async #readable(
    items: readonly Change[],
    readers: readonly Reader[],
    fresh: number,
  ): Promise<((change: Change, reader: number) => boolean | undefined) | undefined> {
    const records = items.flatMap(({ kind, id, only }) =>
      id !== undefined && only === undefined && closable.has(kind)
        ? [{ kind: kind as ClosableKind, id }]
        : [],
    )
    if (records.length === 0 || readers.length === 0) return () => true
    const answer = await this.#edge.world
      .view(
        this.#project,
        'changes_readable',
        { records, readers: readers.map(({ viewer, names }) => ({ viewer, names })) },
        fresh,
        MAX_WAIT_MS,
      )
      .catch(() => refuse('service_unavailable'))
    if (isRefusal(answer) || answer.late) return undefined
    const keyOf = ({ kind, id = '' }: RecordChange) => `${kind} ${id}`
    const at = new Map(records.map((record, index) => [keyOf(record), index]))
    const gone = new Set(answer.gone)
    const readable = answer.readable.map((positions) => new Set(positions))
    return (change, reader) => {
      const index = at.get(keyOf(change))
      if (index === undefined) return true
      return gone.has(index) ? undefined : readable[reader]?.has(index) === true
    }
  }
}

/** Returns the changes as a reader receives them. */
function shown(
  items: readonly Change[],
  { viewer, may }: Reader,
  readable: (change: Change) => boolean | undefined,
): { kind: string; id?: string }[] {
  const whole = new Set<string>()
  const ids = new Map<string, { kind: string; id: string }>()
  for (const change of items) {
    const { kind, id, only } = change
    if ((only !== undefined && only !== viewer.id) || !may(kind)) continue
    const open = id === undefined || only !== undefined ? true : readable(change)
    if (id === undefined || open === undefined) whole.add(kind)
    else if (open) ids.set(`${kind} ${id}`, { kind, id })
  }
  if (ids.size > MAX_RECORDS) for (const { kind } of ids.values()) whole.add(kind)
  return [
    ...[...whole].map((kind) => ({ kind })),
    ...[...ids.values()].filter(({ kind }) => !whole.has(kind)),
  ]
}

/** Opens the sequence of changes of the call's project, or of the organization. */
export type OpenChanges = (
  call: Call,
  after: number | undefined,
) => Promise<OpenedSequence | Refusal>
/** Creates the function that opens sequences of changes. No project is followed at first. */
export function openChanges(edge: Edge): OpenChanges {
  const pool = openFollowerPool<{ follower: ChangeFollower; close(): void }>(edge.world)
  return async (call, after) => {
    const project = scopeId(edge, call)
    const { member, release } = pool.acquire(project, () => ({
      follower: new ChangeFollower(edge, project),
      close: () => {},
    }))
    const begins = after === undefined
    const page = await member.follower.ask()
    if (isRefusal(page)) {
      release()
      return page
    }
    // A cursor after the end of the journal was issued before the journal lost its end. The check
    // may fail although no change was lost. A client then only loads everything again.
    const lost = after !== undefined && !page.late && page.last < after
    return {
      comment: ': keepalive',
      after: lost ? page.last : (after ?? page.last),
      begins,
      join: (sink) => {
        if (lost) sink.write(frame('changes', { changes: [{ kind: '*' }] }, page.last))
        member.follower.join(sink, call, lost ? page.last : (after ?? page.last))
      },
      release,
    }
  }
}
