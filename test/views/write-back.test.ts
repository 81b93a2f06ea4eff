/** The write-back cache against a model: a table, and the values that readers must see. */
import fc from 'fast-check'
import t from 'tap'
import { WriteBackCache } from '../../views/write-back.ts'

interface Row {
  n: number
}
const KEYS = ['a', 'b', 'c', 'd'] as const
const key = fc.constantFrom(...KEYS)
const step = fc.oneof(
  fc.record({ type: fc.constantFrom('set' as const, 'edit' as const), key, n: fc.nat(9) }),
  fc.constantFrom(
    ...(['keep', 'undo', 'flush all', 'flush some', 'forget'] as const).map((type) => ({ type })),
  ),
)

/** A cache and what it must contain. Values with an odd `n` will probably change soon. */
class Modelled {
  readonly table = new Map<string, number>()
  readonly cache: WriteBackCache<Row>
  /** The values that readers must see, and those that the last `keep` accepted. */
  seen = new Map<string, number>()
  kept = new Map<string, number>()
  /** The keys that wait to be written. */
  waiting = new Set<string>()
  written: string[] = []

  readonly #changing: boolean

  constructor(changing: boolean, most: number) {
    this.#changing = changing
    this.cache = new WriteBackCache<Row>(
      (name) => {
        const n = this.table.get(name)
        return n === undefined ? undefined : { n }
      },
      ({ n }, name) => {
        this.table.set(name, n)
        this.written.push(name)
      },
      { most, ...(changing && { changes: ({ n }) => n % 2 === 1 }) },
    )
  }
  change(name: string, n: number): void {
    this.seen.set(name, n)
    this.waiting.add(name)
  }
  edit(name: string, n: number): void {
    const row = this.cache.edit(name)
    if (!row) return
    row.n = n
    this.change(name, n)
  }
  keep(): void {
    this.cache.keep()
    this.kept = new Map(this.seen)
  }
  undo(): void {
    this.cache.undo()
    this.seen = new Map(this.kept)
    for (const name of this.waiting) if (!this.seen.has(name)) this.waiting.delete(name)
  }
  /** Writes. Only batches that succeeded are written (S1 and S2 of `store.ts`). */
  flush(all: boolean): boolean {
    this.keep()
    const left = [...this.waiting].filter(
      (name) => this.#changing && !all && (this.seen.get(name) ?? 0) % 2 === 1,
    )
    const due = [...this.waiting].filter((name) => !left.includes(name))
    this.written = []
    this.cache.flush(all)
    this.waiting = new Set(left)
    return (
      String(this.written.sort()) === String(due.sort()) &&
      due.every((name) => this.table.get(name) === this.seen.get(name))
    )
  }
  forget(): void {
    this.cache.forget()
    this.seen = new Map(this.table)
    this.kept = new Map(this.table)
    this.waiting = new Set()
  }
  /** Whether the cache contains what it must contain. */
  holds(): boolean {
    return (
      this.cache.waiting === this.waiting.size &&
      KEYS.every((name) => this.cache.get(name)?.n === this.seen.get(name))
    )
  }
}

t.test('readers see their changes, and the table gets what batches kept', async (t) => {
  const property = fc.property(
    fc.array(step, { maxLength: 60 }),
    fc.boolean(),
    fc.constantFrom(0, 2, 100),
    (steps, changing, most) => {
      const one = new Modelled(changing, most)
      return steps.every((step) => {
        if (step.type === 'set') {
          one.cache.set(step.key, { n: step.n })
          one.change(step.key, step.n)
        } else if (step.type === 'edit') one.edit(step.key, step.n)
        else if (step.type === 'flush all' || step.type === 'flush some') {
          if (!one.flush(step.type === 'flush all')) return false
        } else one[step.type]()
        return one.holds()
      })
    },
  )
  t.doesNotThrow(() => fc.assert(property, { numRuns: 1000 }))
})

t.test('a batch changes copies of the values that existed before it', async (t) => {
  const cache = new WriteBackCache<Row>(
    () => ({ n: 1 }),
    () => {},
  )
  const before = cache.get('a')
  const copy = cache.edit('a')
  t.not(copy, before)
  t.equal(cache.edit('a'), copy, 'one copy in each batch')
  cache.keep()
  t.not(cache.edit('a'), copy)
  cache.undo()
  t.equal(cache.get('a'), copy)
})

t.test('a record is loaded once, and records that need not be written are dropped', async (t) => {
  const loaded: string[] = []
  const cache = new WriteBackCache<number>(
    (name) => loaded.push(name),
    () => {},
    { most: 1 },
  )
  t.equal(cache.get('new', true), undefined, 'nothing is loaded for new keys')
  t.equal(cache.get('a'), 1)
  t.equal(cache.get('a'), 1)
  t.equal(cache.peek('b'), undefined)
  cache.set('b', 7)
  t.strictSame([...cache.keys()], ['a', 'b'])
  cache.keep()
  cache.flush(true)
  t.strictSame([...cache.keys()], [], 'more records than the maximum')
  t.equal(cache.get('b'), 2)
  t.strictSame(loaded, ['a', 'b'])
})
