/**
 * Caches definitions in memory, so that a resolution need not read a large value again. A cached
 * definition is used only if the store still has its revision. The least recently used definitions
 * are dropped.
 */
import type { Value, Versioned } from './store.ts'

interface Kept {
  readonly found: Versioned<Value>
  /** Length of the definition as JSON, in characters. */
  readonly size: number
}
interface DefinitionMemory {
  get(name: string, revision: number): Versioned<Value> | undefined
  set(name: string, found: Versioned<Value>): void
}

/**
 * Creates a cache of definitions.
 * @param limit maximum total number of characters of the cached definitions.
 */
export function createMemory(limit: number): DefinitionMemory {
  const all = new Map<string, Kept>()
  let total = 0
  const drop = (name: string): void => {
    total -= all.get(name)?.size ?? 0
    all.delete(name)
  }
  return {
    get: (name, revision) => {
      const kept = all.get(name)
      if (kept?.found.revision !== revision) return undefined
      all.delete(name)
      all.set(name, kept)
      return kept.found
    },
    set: (name, found) => {
      drop(name)
      const size = JSON.stringify(found.entry).length
      all.set(name, { found, size })
      total += size
      for (const oldest of all.keys()) {
        if (total <= limit) break
        drop(oldest)
      }
    },
  }
}
