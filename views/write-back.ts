/**
 * Changes of rows that are held in memory until a flush writes them to the tables (S1 to S3 of
 * `store.ts`).
 *
 * Invariant: a removed entry of a cache is empty, and after many removals the entries move to
 * another `Map`. Removed rows are therefore not kept in memory, as in `TransientMap`.
 */
import { copyOf, isWorthMoving } from '../protocol/rules/transient-map.ts'

/** Options of a table's cache. */
interface CacheOptions<V> {
  /**
   * Maximum number of records that stay cached after a flush. If there are more, all records that
   * need not be written are dropped.
   */
  readonly most?: number
  /** Copies a value for `edit`. By default, the copy is shallow. */
  readonly copy?: (value: V) => V
  /**
   * Whether a value will probably change soon. A partial flush leaves such a value in memory, and
   * every flush drops the other values that it writes from the cache. If absent, every flush writes
   * all values, and written values stay cached.
   */
  readonly changes?: (value: V, key: string) => boolean
}
/** Default maximum number of cached records of a table. */
const MAX_CACHED = 8192

/** Changes that wait in memory until a flush writes them to the tables. */
export interface Buffered {
  /** The number of rows that wait to be written. */
  readonly waiting: number
  /** Accepts the changes of a batch. */
  keep(): void
  /** Reverts the changes since the last `keep`. */
  undo(): void
  /**
   * Writes the waiting rows.
   * @param all whether values that will probably change soon are written too.
   */
  flush(all: boolean): void
  /** Discards all changes that have not been written. */
  forget(): void
}

/** A cached value. `value` is undefined only after the entry was removed. */
interface Cached<V> {
  readonly key: string
  value: V | undefined
  /** The value before the current batch, if the batch changed it; undefined if there was none. */
  before: V | undefined
  /** Whether the current batch has changed the value. */
  changed: boolean
  /** Whether the value waits to be written. */
  dirty: boolean
}

/**
 * A write-back cache of one table. Between two flushes, a record is loaded at most once and written
 * at most once, regardless of how many events change it. A value that existed before the current
 * batch is never mutated, so that `undo` can restore it: events replace a value by `set`, or change
 * the copy that `edit` returns.
 */
export class WriteBackCache<V> implements Buffered {
  #rows = new Map<string, Cached<V>>()
  /** Number of removals since the entries moved to another map. */
  #removals = 0
  /** The entries that wait to be written, in the order of their changes, and removed entries. */
  #dirty: Cached<V>[] = []
  #waiting = 0
  /** The entries that the current batch has changed. */
  #changed: Cached<V>[] = []
  readonly #load: (key: string) => V | undefined
  readonly #save: (value: V, key: string) => void
  readonly #most: number
  readonly #copy: (value: V) => V
  readonly #changes: ((value: V, key: string) => boolean) | undefined
  constructor(
    load: (key: string) => V | undefined,
    save: (value: V, key: string) => void,
    { most = MAX_CACHED, copy = (value) => ({ ...value }), changes }: CacheOptions<V> = {},
  ) {
    this.#load = load
    this.#save = save
    this.#most = most
    this.#copy = copy
    this.#changes = changes
  }
  /** The number of records that wait to be written. */
  get waiting(): number {
    return this.#waiting
  }
  /**
   * Returns the value of a key; undefined if it has none. The value is loaded if it is not cached.
   * @param fresh whether the caller is certain that the table has no such key. In that case,
   * nothing is loaded.
   */
  get(key: string, fresh = false): V | undefined {
    return this.#find(key, fresh)?.value
  }
  /** Returns the cached value of a key; undefined if none is cached. Nothing is loaded. */
  peek(key: string): V | undefined {
    return this.#rows.get(key)?.value
  }
  /** Returns the keys of the cached values. */
  keys(): IterableIterator<string> {
    return this.#rows.keys()
  }
  set(key: string, value: V): void {
    this.#change(this.#rows.get(key) ?? this.#add(key), value)
  }
  /**
   * Returns a value that the current batch may mutate; undefined if the key has no value. The value
   * is copied once for each batch.
   * @param fresh as for `get`.
   */
  edit(key: string, fresh = false): V | undefined {
    const cached = this.#find(key, fresh)
    if (cached && !cached.changed) this.#change(cached, this.#copy(cached.value as V))
    return cached?.value
  }
  #find(key: string, fresh: boolean): Cached<V> | undefined {
    const cached = this.#rows.get(key)
    if (cached || fresh) return cached
    const loaded = this.#load(key)
    return loaded === undefined ? undefined : this.#add(key, loaded)
  }
  #add(key: string, value?: V): Cached<V> {
    const cached = { key, value, before: undefined, changed: false, dirty: false }
    this.#rows.set(key, cached)
    return cached
  }
  #change(cached: Cached<V>, value: V): void {
    if (!cached.changed) {
      cached.before = cached.value
      cached.changed = true
      this.#changed.push(cached)
    }
    cached.value = value
    if (cached.dirty) return
    cached.dirty = true
    this.#waiting++
    this.#dirty.push(cached)
  }
  #remove(cached: Cached<V>): void {
    this.#rows.delete(cached.key)
    this.#removals++
    cached.value = cached.before = undefined
    this.#clean(cached)
  }
  #clean(cached: Cached<V>): void {
    if (!cached.dirty) return
    cached.dirty = false
    this.#waiting--
  }
  /**
   * Writes the changed values.
   * @param all whether values that will probably change soon are written too.
   */
  flush(all: boolean): void {
    const changes = this.#changes
    const dirty = this.#dirty
    this.#dirty = []
    for (const cached of dirty) {
      if (!cached.dirty) continue
      const value = cached.value as V
      const soon = changes?.(value, cached.key) === true
      if (soon && !all) {
        this.#dirty.push(cached)
        continue
      }
      this.#save(value, cached.key)
      if (changes && !soon) this.#remove(cached)
      else this.#clean(cached)
    }
    if (this.#rows.size - this.#waiting > this.#most)
      for (const cached of this.#rows.values()) if (!cached.dirty) this.#remove(cached)
    if (isWorthMoving(this.#removals, this.#rows.size)) {
      this.#rows = copyOf(this.#rows)
      this.#removals = 0
    }
  }
  keep(): void {
    for (const cached of this.#changed) {
      cached.changed = false
      cached.before = undefined
    }
    if (this.#changed.length > 0) this.#changed = []
  }
  undo(): void {
    for (const cached of this.#changed) {
      if (cached.value === undefined) continue
      if (cached.before === undefined) this.#remove(cached)
      else cached.value = cached.before
    }
    this.keep()
  }
  forget(): void {
    for (const cached of this.#rows.values()) this.#remove(cached)
    this.#dirty = []
    this.keep()
  }
}
