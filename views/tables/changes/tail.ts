/**
 * The records that have changed recently, in memory. Changes are recorded only while a gateway
 * queries them, so the tail costs nothing when no client follows changes. A reader whose cursor is
 * older than the tail must load everything again.
 *
 * Invariant: for each project, the tail contains the latest change to every record that changed
 * after the project's floor.
 */
import type { RecordChange } from '../../../protocol/streams/changes.ts'

interface Noted extends RecordChange {
  readonly cursor: number
}
/** The changes of a project, oldest first. Changes up to the cursor `floor` may be missing. */
interface OfProject {
  floor: number
  readonly changes: Map<string, Noted>
}

interface Recent {
  readonly changes: readonly Noted[]
  readonly floor: number
}

/** Maximum number of changed records per project, and maximum number of projects. */
const LIMIT = { records: 1000, projects: 500 } as const
/** Number of changes after which recording stops, unless a gateway queries the changes. */
const MAX_UNQUERIED = 20_000

export class ChangeTail {
  readonly #projects = new Map<string, OfProject>()
  #batch: (Noted & { readonly project: string })[] = []
  #active = false
  /** Number of changes since the last query. */
  #unqueried = 0
  /** The floor of every project that is not in `#projects`. */
  #floor = 0

  /** Whether changes are recorded. */
  get active(): boolean {
    return this.#active
  }
  /**
   * Discards everything.
   * @param current the cursor up to which everything is applied.
   */
  begin(current: number): void {
    this.#projects.clear()
    this.#batch = []
    this.#floor = current
  }
  /** Adds a change of the current batch. */
  add(project: string, change: RecordChange, cursor: number): void {
    this.#batch.push({ ...change, project, cursor })
  }
  /**
   * Accepts the current batch.
   * @param current the cursor up to which everything is applied.
   */
  keep(current: number): void {
    if (!this.#active) return
    this.#unqueried += this.#batch.length
    for (const { project, ...change } of this.#batch) this.#note(project, change)
    this.#batch = []
    if (this.#unqueried <= MAX_UNQUERIED) return
    this.#active = false
    this.begin(current)
  }
  /** Discards the current batch, which failed. */
  undo(): void {
    this.#batch = []
  }
  #note(project: string, change: Noted): void {
    let of = this.#projects.get(project)
    if (of) this.#projects.delete(project)
    else of = { floor: this.#floor, changes: new Map() }
    // Maps iterate in insertion order. Whatever changes is inserted again at the end, so the
    // project and the record that changed least recently come first.
    this.#projects.set(project, of)
    const key = `${change.kind} ${change.id ?? ''} ${change.only ?? ''}`
    of.changes.delete(key)
    of.changes.set(key, change)
    if (of.changes.size > LIMIT.records) {
      const [first = '', oldest] = of.changes.entries().next().value ?? []
      of.changes.delete(first)
      of.floor = Math.max(of.floor, oldest?.cursor ?? 0)
    }
    if (this.#projects.size <= LIMIT.projects) return
    const [first = '', dropped] = this.#projects.entries().next().value ?? []
    this.#projects.delete(first)
    for (const { cursor } of dropped?.changes.values() ?? [])
      this.#floor = Math.max(this.#floor, cursor)
    this.#floor = Math.max(this.#floor, dropped?.floor ?? 0)
  }
  /**
   * Returns the changes of a project after a cursor. Changes up to `floor` may be missing.
   * @param current the cursor up to which everything is applied.
   */
  read(project: string, after: number, current: number): Recent {
    if (!this.#active) {
      this.#active = true
      this.begin(current)
    }
    this.#unqueried = 0
    const of = this.#projects.get(project)
    const changes = of ? [...of.changes.values()].filter(({ cursor }) => cursor > after) : []
    return { changes, floor: of?.floor ?? this.#floor }
  }
}
