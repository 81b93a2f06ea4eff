/**
 * Looks up host names, with turns for the projects that cause the lookups. Node.js makes lookups on
 * half of its threads for I/O, in the order of the calls, and cannot abort one. A lookup takes many
 * seconds when the name servers of a host do not answer, so a project with many such hosts would
 * otherwise delay the requests of all others.
 *
 * Invariants:
 * L1. At most one lookup of a name is in progress. Its callers share the result.
 * L2. At most `total` lookups are in progress, and at most half of them have the same owner.
 * L3. Owners take turns. A lookup is not begun when none of its callers waits for it any more.
 */
import { orAborted } from '../../client/watchdog.ts'

/** Resolves a host name to all of its addresses. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** The cause of a lookup. */
export interface LookupCause {
  /** The project for which the name is looked up, or another text that shares its turns. */
  readonly owner?: string
  /** Aborts when the caller no longer waits for the result. */
  readonly signal?: AbortSignal
}

/** Number of threads for I/O that Node.js has by default. */
const DEFAULT_THREADS = 4

/**
 * Returns how many lookups may be in progress: three quarters of those that Node.js makes at a time,
 * so that lookups of the service itself, such as those for models, do not wait.
 * @param threads value of `UV_THREADPOOL_SIZE`.
 */
export const lookupsOf = (threads: string | undefined): number =>
  Math.max(2, Math.floor((((Number(threads) || DEFAULT_THREADS) + 1) * 3) / 8))

interface Lookup {
  readonly name: string
  callers: number
  begun: boolean
  readonly result: Promise<readonly string[]>
  settle(result: Promise<readonly string[]>): void
}

function createLookup(name: string): Lookup {
  let settle: Lookup['settle'] = () => {}
  const result = new Promise<readonly string[]>((resolve) => {
    settle = resolve
  })
  return { name, callers: 0, begun: false, result, settle }
}

/**
 * Creates a function that looks up names.
 * @param resolve makes one lookup.
 * @param total maximum number of lookups in progress.
 */
export function createLookups(
  resolve: Resolve,
  total = lookupsOf(undefined),
): (name: string, cause?: LookupCause) => Promise<readonly string[]> {
  const lookups = new Map<string, Lookup>()
  /** The lookups that wait, by owner. The first owner has the next turn. */
  const waiting = new Map<string, Lookup[]>()
  const busy = new Map<string, number>()
  const share = Math.max(1, Math.floor(total / 2))
  let inProgress = 0

  function begin(owner: string, lookup: Lookup): void {
    lookup.begun = true
    inProgress++
    busy.set(owner, (busy.get(owner) ?? 0) + 1)
    const found = resolve(lookup.name)
    const end = (): void => {
      inProgress--
      const left = (busy.get(owner) ?? 1) - 1
      if (left > 0) busy.set(owner, left)
      else busy.delete(owner)
      lookups.delete(lookup.name)
      lookup.settle(found)
      beginNext()
    }
    found.then(end, end)
  }
  function beginNext(): void {
    for (const [owner, line] of waiting) {
      if (inProgress >= total) return
      if ((busy.get(owner) ?? 0) >= share) continue
      waiting.delete(owner)
      const left = line.filter(({ begun, callers }) => !begun && callers > 0)
      const lookup = left.shift()
      if (left.length > 0) waiting.set(owner, left)
      if (lookup) begin(owner, lookup)
    }
  }

  return async (name, { owner = '', signal } = {}) => {
    const lookup = lookups.get(name) ?? createLookup(name)
    lookups.set(name, lookup)
    lookup.callers++
    if (!lookup.begun) {
      const line = waiting.get(owner) ?? []
      if (!line.includes(lookup)) waiting.set(owner, [...line, lookup])
      beginNext()
    }
    try {
      return await (signal ? orAborted(lookup.result, signal) : lookup.result)
    } finally {
      lookup.callers--
      if (lookup.callers === 0 && !lookup.begun) lookups.delete(name)
    }
  }
}
