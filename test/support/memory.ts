/**
 * In-memory ports of the shard host. Tests control time and inject faults: appends with an unknown
 * outcome, conflicts of stale owners, lost snapshots. No port waits for real time.
 */
import type {
  Appended,
  Blobs,
  Bus,
  Clock,
  Journal,
  JournalPosition,
  NoAnswer,
  Random,
  Registry,
  Snapshots,
  Stored,
} from '../../nodes/host/ports.ts'

/** A clock that tests advance. Due timers run in order of time. */
export class ManualClock implements Clock {
  #now = Date.UTC(2026, 0, 1)
  #elapsed = 0
  #timers: { at: number; run: () => void; id: number }[] = []
  #ids = 0
  now = (): number => this.#now + this.#elapsed
  /** Moves the wall clock by a number of milliseconds, and leaves the monotonic clock unchanged. */
  setBy = (ms: number): void => {
    this.#now += ms
  }
  elapsed = (): number => this.#elapsed
  later = (ms: number, run: () => void): (() => void) => {
    const timer = { at: this.#elapsed + ms, run, id: this.#ids++ }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }
  /** Advances the time and runs due timers. Pending promises settle after each timer. */
  async advance(ms: number): Promise<void> {
    const until = this.#elapsed + ms
    await settleAll()
    for (;;) {
      // Timers are in creation order, so the first one with the earliest time runs next.
      let next = this.#timers[0]
      for (const timer of this.#timers) if (next && timer.at < next.at) next = timer
      if (!next || next.at > until) break
      this.#timers = this.#timers.filter((timer) => timer !== next)
      this.#elapsed = Math.max(this.#elapsed, next.at)
      next.run()
      await settleAll()
    }
    this.#elapsed = until
  }
}
/** Resolves after every pending promise chain has run until it waits for external input. */
export const settleAll = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await new Promise<void>((done) => setImmediate(done))
}

/**
 * Receives the name of a step before or after an operation of a port. May throw to simulate a crash
 * of the caller at that point.
 */
export type Tick = (step: string) => void | Promise<void>

export class MemoryJournal implements Journal {
  readonly messages: {
    sequence: number
    partition: number
    shard: number
    id: string
    data: Uint8Array
  }[] = []
  readonly tick: Tick
  /**
   * Faults of the next appends. `lost` stores nothing, `stored` stores the envelope, and both
   * return an unknown outcome. `full` refuses the append.
   */
  faults: ('lost' | 'stored' | 'full')[] = []
  /** Number of sequences that the stream reports as missing. */
  missing = 0
  first = 1
  constructor(tick: Tick = () => {}) {
    this.tick = tick
  }
  async append(
    partition: number,
    shard: number,
    data: Uint8Array,
    expected: number,
    id: string,
  ): Promise<Appended> {
    await this.tick('append')
    const fault = this.faults.shift()
    if (fault === 'lost') return 'unknown'
    if (fault === 'full') return 'refused'
    const known = this.messages.find((message) => message.id === id)
    if (known) return { sequence: known.sequence }
    if ((this.#last(partition, shard)?.sequence ?? 0) !== expected) return 'conflict'
    const sequence = this.first + this.messages.length
    this.messages.push({ sequence, partition, shard, id, data })
    await this.tick('appended')
    return fault === 'stored' ? 'unknown' : { sequence }
  }
  #last(partition: number, shard: number) {
    return this.messages
      .filter((message) => message.partition === partition && message.shard === shard)
      .at(-1)
  }
  async last(partition: number, shard: number): Promise<Stored | undefined> {
    await this.tick('last')
    const last = this.#last(partition, shard)
    return last && { sequence: last.sequence, message_id: last.id, data: last.data }
  }
  async at(partition: number, sequence: number): Promise<Stored | undefined> {
    await this.tick('envelope read')
    const found = this.messages[sequence - this.first]
    return found?.partition === partition
      ? { sequence, message_id: found.id, data: found.data }
      : undefined
  }
  async *read(partition: number, shard: number, from: number): AsyncIterable<Stored> {
    await this.tick('read')
    for (const message of [...this.messages])
      if (message.partition === partition && message.shard === shard && message.sequence >= from)
        yield { sequence: message.sequence, message_id: message.id, data: message.data }
  }
  async position(): Promise<JournalPosition> {
    const last = this.messages.at(-1)?.sequence ?? 0
    return { first: this.first, last, missing: this.missing }
  }
  follow(): () => Promise<void> {
    throw new Error('nothing follows the journal in memory')
  }
}

export class MemorySnapshots implements Snapshots {
  readonly values = new Map<string, { readonly data: Uint8Array; readonly revision: number }>()
  readonly tick: Tick
  #revision = 0
  constructor(tick: Tick = () => {}) {
    this.tick = tick
  }
  async get(
    partition: number,
    key: string,
  ): Promise<{ data: Uint8Array; revision: number } | undefined> {
    await this.tick('snapshot read')
    return this.values.get(`${partition}/${key}`)
  }
  async put(
    partition: number,
    key: string,
    data: Uint8Array,
    revision?: number,
  ): Promise<number | undefined> {
    await this.tick('snapshot write')
    const at = `${partition}/${key}`
    if (revision !== undefined && (this.values.get(at)?.revision ?? 0) !== revision)
      return undefined
    this.values.set(at, { data, revision: ++this.#revision })
    await this.tick('snapshot written')
    return this.values.get(at)?.revision
  }
  async delete(partition: number, key: string): Promise<void> {
    this.values.delete(`${partition}/${key}`)
  }
}

export class MemoryRegistry implements Registry {
  readonly values = new Map<string, { value: string; revision: number }>()
  #revision = 0
  async get(key: string): Promise<{ value: string; revision: number } | undefined> {
    return this.values.get(key)
  }
  async put(key: string, value: string, revision: number): Promise<number | undefined> {
    if ((this.values.get(key)?.revision ?? 0) !== revision) return undefined
    this.values.set(key, { value, revision: ++this.#revision })
    return this.#revision
  }
  async delete(key: string): Promise<void> {
    this.values.delete(key)
  }
  async list(prefix: string): Promise<{ key: string; value: string; revision: number }[]> {
    return [...this.values]
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, entry]) => ({ key, ...entry }))
  }
}

export class MemoryBus implements Bus {
  readonly #listeners: {
    pattern: readonly string[]
    handler: (message: unknown, subject: string) => unknown
    group: string | undefined
  }[] = []
  readonly published: { subject: string; message: unknown }[] = []
  readonly tick: Tick
  constructor(tick: Tick = () => {}) {
    this.tick = tick
  }
  #match(subject: string) {
    const tokens = subject.split('.')
    return this.#listeners.filter(({ pattern }) => {
      return pattern.at(-1) === '>'
        ? pattern.slice(0, -1).every((p, i) => p === '*' || p === tokens[i]) &&
            tokens.length >= pattern.length
        : pattern.length === tokens.length && pattern.every((p, i) => p === '*' || p === tokens[i])
    })
  }
  async request(subject: string, message: unknown): Promise<{ answer: unknown } | NoAnswer> {
    await this.tick(`request ${subject}`)
    const [listener] = this.#match(subject)
    if (!listener) return 'no_responders'
    const answer = await listener.handler(JSON.parse(JSON.stringify(message)), subject)
    await this.tick(`answered ${subject}`)
    return answer === undefined ? 'timeout' : { answer: JSON.parse(JSON.stringify(answer)) }
  }
  wants(_subject: string): boolean {
    return true
  }
  hears(_topic: string): boolean {
    return true
  }
  here(subject: string, message: unknown): unknown {
    const answer = this.#match(subject)[0]?.handler(JSON.parse(JSON.stringify(message)), subject)
    return answer === undefined || answer instanceof Promise
      ? undefined
      : JSON.parse(JSON.stringify(answer))
  }
  publish(subject: string, message: unknown): void {
    this.published.push({ subject, message })
    const groups = new Set<string>()
    for (const listener of this.#match(subject)) {
      if (listener.group !== undefined && groups.has(listener.group)) continue
      if (listener.group !== undefined) groups.add(listener.group)
      queueMicrotask(() => listener.handler(JSON.parse(JSON.stringify(message)), subject))
    }
  }
  subscribe(
    subject: string,
    handler: (message: unknown, subject: string) => unknown,
    group?: string,
  ): () => void {
    const listener = { pattern: subject.split('.'), handler, group }
    this.#listeners.push(listener)
    return () => {
      const index = this.#listeners.indexOf(listener)
      if (index >= 0) this.#listeners.splice(index, 1)
    }
  }
  async flush(): Promise<void> {}
}

export class MemoryBlobs implements Blobs {
  readonly values = new Map<string, Uint8Array>()
  async put(name: string, data: Uint8Array): Promise<void> {
    this.values.set(name, data)
  }
  async get(name: string): Promise<Uint8Array | undefined> {
    return this.values.get(name)
  }
  async delete(name: string): Promise<void> {
    this.values.delete(name)
  }
}

/** Returns a reproducible random source (mulberry32). */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = Math.imul(state ^ (state >>> 15), 1 | state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return (x ^ (x >>> 14)) >>> 0
  }
  return { bytes: (length) => Uint8Array.from({ length }, () => next() & 255) }
}
export const silentLog = { debug() {}, info() {}, warn() {}, error() {} }
