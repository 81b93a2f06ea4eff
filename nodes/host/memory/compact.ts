/**
 * The JSON of envelope format 3, in which repeated data is written once.
 *
 * Invariants:
 * C1. `restore` returns entries equal to those that were written, except that the members of events
 *     may be in another order. The entries share origins, principals and payloads in memory.
 * C2. Data that views do not read follows the only line feed of the text, so that views need not
 *     parse it.
 * C3. A released form never changes, because journals contain it.
 *
 * The text is `{"v":3,"epoch":…,"prev":…,"projects":[…],"actors":[…],"origins":[…],"entries":[…],`,
 * a line feed, and `"hidden":[…]}`. An entry is
 * `[project, kind, id, command id, command name, origin, prev, events, fingerprint?]`, where
 * project and origin are indexes. The members `principal` and `credential` of an origin are indexes
 * of `actors`. In events of runs, a number as `payload` is the index of the event that has the
 * payload.
 */
import type { Entry, Envelope, Event, Kind, Origin } from '../../../protocol/entry.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'

/** The version number of this form of JSON (`v`). */
const COMPACT = 3

/**
 * Maximum number of events that contain a reference to the same payload. This bounds how much
 * longer the plain JSON of an entry can be than its JSON in this form.
 */
export const MAX_REPEATS = 3

type Fields = Readonly<Record<string, unknown>>
/**
 * The replacement for the events of an entry in its JSON, if the events are stored as a value in
 * the object store.
 */
export interface EventsReference {
  readonly blob: string
  readonly count: number
}
type CompactEntry = readonly [
  project: number,
  kind: Kind,
  id: string,
  command: string,
  name: string,
  origin: number,
  prev: number,
  events: readonly Event[] | EventsReference,
  fingerprint?: string,
]
/**
 * The hidden data of an entry: its reply, and members of its events, each with the index of the
 * event. 0 for an entry without hidden data.
 */
type Hidden = 0 | { readonly reply?: unknown; readonly events?: readonly [number, unknown][] }
interface CompactEnvelope extends Pick<Envelope, 'epoch' | 'prev'> {
  readonly projects: readonly string[]
  readonly actors: readonly Origin['principal'][]
  readonly origins: readonly (Omit<Origin, 'principal' | 'credential'> & {
    readonly principal: number
    readonly credential?: number
  })[]
  readonly entries: readonly CompactEntry[]
  readonly hidden?: readonly Hidden[]
}

/** Returns the name of the event member that may be hidden from views, for a kind of actor. */
const memberOf = (kind: Kind): 'private' | 'header' => (kind === 'run' ? 'private' : 'header')
/** Whether views do not read this member of an event. */
function isHidden(kind: Kind, event: Event & Fields): boolean {
  if (kind === 'run') return event['private'] !== undefined
  const { header, job } = event as { header?: JobHeader; job?: { kind?: unknown } }
  if (header === undefined || event.type === 'job.claimed') return header !== undefined
  return header.kind === job?.kind && !header.workers_only && !header.environment
}

/** Writes the entries of one envelope. */
export class CompactWriter {
  /** The JSON of each entry, without the data that is hidden from views. */
  readonly #entries: string[] = []
  /** The data of each entry that views do not read, as JSON. */
  readonly #hidden: string[] = []
  readonly #projects: string[] = []
  readonly #actors: string[] = []
  readonly #actorsOf = new Map<object, number>()
  readonly #origins: string[] = []
  #lastOrigin: Origin | undefined

  add(entry: Entry): number {
    const { kind, reply } = entry
    const shown: Event[] = []
    const hidden: [number, unknown][] = []
    if (kind === 'run' || kind === 'queue') compactEvents(entry, shown, hidden)
    const text = this.#textOf(entry, shown.length > 0 ? shown : entry.events)
    const rest =
      reply === undefined && hidden.length === 0
        ? '0'
        : JSON.stringify(hidden.length === 0 ? { reply } : { reply, events: hidden })
    this.#entries.push(text)
    this.#hidden.push(rest)
    return text.length + rest.length
  }
  moveOut(index: number, entry: Entry, outside: EventsReference): void {
    this.#entries[index] = this.#textOf(entry, outside)
    this.#hidden[index] = '0'
  }
  part(): undefined {}
  json({ epoch, prev }: Pick<Envelope, 'epoch' | 'prev'>): string {
    return (
      `{"v":${COMPACT},"epoch":${epoch},"prev":${prev},"projects":${JSON.stringify(this.#projects)},` +
      `"actors":[${this.#actors.join(',')}],"origins":[${this.#origins.join(',')}],` +
      `"entries":[${this.#entries.join(',')}],\n"hidden":[${this.#hidden.join(',')}]}`
    )
  }

  #textOf(entry: Entry, events: readonly Event[] | EventsReference): string {
    const { project, kind, id, command, origin, prev } = entry
    const fields: CompactEntry = [
      this.#project(project),
      kind,
      id,
      command.id,
      command.name,
      this.#origin(origin),
      prev,
      events,
    ]
    return JSON.stringify(
      command.fingerprint === undefined ? fields : [...fields, command.fingerprint],
    )
  }
  #project(id: string): number {
    const known = this.#projects.indexOf(id)
    return known >= 0 ? known : this.#projects.push(id) - 1
  }
  /**
   * Returns the index of an origin. Adds it first, unless it is the origin of the previous entry:
   * the entries of one command share one object.
   */
  #origin(origin: Origin): number {
    if (origin !== this.#lastOrigin) {
      this.#lastOrigin = origin
      const { principal, credential } = origin
      this.#origins.push(
        JSON.stringify({
          ...origin,
          principal: this.#actor(principal),
          ...(credential && { credential: this.#actor(credential) }),
        }),
      )
    }
    return this.#origins.length - 1
  }
  #actor(actor: object): number {
    let index = this.#actorsOf.get(actor)
    if (index === undefined) {
      const text = JSON.stringify(actor)
      index = this.#actors.indexOf(text)
      if (index < 0) index = this.#actors.push(text) - 1
      this.#actorsOf.set(actor, index)
    }
    return index
  }
}

/** Splits the events of an entry into the data that views read and the hidden data. */
function compactEvents({ kind, events }: Entry, shown: Event[], hidden: [number, unknown][]): void {
  const member = memberOf(kind)
  let payload: unknown
  let index = 0
  let repeats = 0
  for (let i = 0; i < events.length; i++) {
    const event = events[i] as Event & Fields
    const repeated = isRepeated(kind, event['payload'], payload) && repeats++ < MAX_REPEATS
    if (!repeated) {
      payload = event['payload']
      index = i
      repeats = 0
    }
    const hides = isHidden(kind, event)
    if (hides) hidden.push([i, event[member]])
    shown.push(
      hides || repeated
        ? reduced(event, hides ? member : undefined, repeated ? index : undefined)
        : event,
    )
  }
}
/** Whether the payload of an event is the same object as that of the previous event. */
const isRepeated = (kind: Kind, payload: unknown, previous: unknown): boolean =>
  kind === 'run' && payload === previous && typeof payload === 'object' && payload !== null
/**
 * Returns an event without `member` and, if `index` is given, with the index instead of its
 * payload.
 */
function reduced(event: Event & Fields, member: string | undefined, index?: number): Event {
  const fields: Record<string, unknown> = {}
  for (const name in event)
    if (name !== member)
      fields[name] = name === 'payload' && index !== undefined ? index : event[name]
  return fields as unknown as Event
}

/** Whether the JSON of an envelope has this form. */
export const isCompact = (text: string): boolean => text.startsWith(BEGIN)
const BEGIN = `{"v":${COMPACT},`

/**
 * Parses the JSON of an envelope. Large values are represented by their names only.
 * @param whole whether to restore the data that views do not read.
 */
export function restore(text: string, whole: boolean): Envelope {
  const { epoch, prev, projects, actors, origins, entries, hidden } = JSON.parse(
    whole ? text : `${text.slice(0, text.indexOf(',\n'))}}`,
  ) as CompactEnvelope
  const restored = origins.map(
    ({ at, principal, credential, ...rest }): Origin => ({
      at,
      principal: actors[principal] as Origin['principal'],
      ...(credential !== undefined && {
        credential: actors[credential] as unknown as NonNullable<Origin['credential']>,
      }),
      ...rest,
    }),
  )
  return {
    v: 1,
    epoch,
    prev,
    entries: entries.map((fields, i) =>
      restoreEntry(fields, projects, restored, hidden?.[i] || undefined),
    ),
  }
}
function restoreEntry(
  [project, kind, id, command, name, origin, prev, events, fingerprint]: CompactEntry,
  projects: readonly string[],
  origins: readonly Origin[],
  hidden: Exclude<Hidden, 0> | undefined,
): Entry {
  if (kind === 'run' && Array.isArray(events)) restorePayloads(events)
  if (hidden?.events)
    for (const [index, value] of hidden.events) {
      const event = (events as unknown as Record<string, unknown>[])[index]
      if (event) event[memberOf(kind)] = value
    }
  const entry = {
    project: projects[project] as string,
    kind,
    id,
    command: fingerprint === undefined ? { id: command, name } : { id: command, name, fingerprint },
    origin: origins[origin] as Origin,
    events: events as readonly Event[],
    prev,
  }
  return hidden?.reply === undefined ? entry : { ...entry, reply: hidden.reply }
}
function restorePayloads(events: readonly { payload?: unknown }[]): void {
  for (const event of events)
    if (typeof event.payload === 'number') event.payload = events[event.payload]?.payload
}
