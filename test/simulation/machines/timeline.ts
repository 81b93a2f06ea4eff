/**
 * Virtual time: a queue of events, ordered by time. Each event runs as a separate immediate.
 * Between two events, every promise chain therefore runs until it waits for something external.
 * Nothing waits for real time.
 */
interface Happening {
  readonly at: number
  readonly order: number
  run: (() => void) | undefined
}
const before = (a: Happening, b: Happening): boolean =>
  a.at < b.at || (a.at === b.at && a.order < b.order)
/** Number of immediates that are queued together. Node.js drains microtasks between them. */
const STRIDE = 64

export class Timeline {
  /** Milliseconds since the simulation began. */
  now = 0
  /** Number of events so far. */
  steps = 0
  readonly #heap: Happening[] = []
  #order = 0

  /** Schedules an event in `ms` milliseconds. The returned function cancels it. */
  after(ms: number, run: () => void): () => void {
    const happening: Happening = { at: this.now + Math.max(0, ms), order: this.#order++, run }
    this.#push(happening)
    return () => {
      happening.run = undefined
    }
  }
  /**
   * Advances the time to `until`, or until `enough` returns true. `enough` is called before every
   * event.
   */
  pass(until: number, enough: () => boolean = () => false): Promise<void> {
    return new Promise((done, fail) => {
      let over = false
      const step = () => {
        if (over) return
        try {
          const next = this.#heap[0]
          if (!next || next.at > until || enough()) {
            over = true
            if (!next || next.at > until) this.now = until
            done()
            return
          }
          this.#pop()
          this.now = next.at
          if (!next.run) return
          this.steps++
          next.run()
        } catch (error) {
          over = true
          fail(error)
        }
      }
      const stride = () => {
        if (over) return
        for (let i = 0; i < STRIDE; i++) setImmediate(step)
        setImmediate(stride)
      }
      stride()
    })
  }

  #push(item: Happening): void {
    const heap = this.#heap
    let i = heap.push(item) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      const above = heap[parent] as Happening
      if (!before(item, above)) break
      heap[i] = above
      i = parent
    }
    heap[i] = item
  }
  #pop(): void {
    const heap = this.#heap
    const item = heap.pop() as Happening
    if (heap.length === 0) return
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1] as Happening, heap[child] as Happening))
        child++
      if (!before(heap[child] as Happening, item)) break
      heap[i] = heap[child] as Happening
      i = child
    }
    heap[i] = item
  }
}
