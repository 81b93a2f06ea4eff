/** Measures the resident memory of a server after garbage collection. */
import { fileURLToPath } from 'node:url'
import { pause } from './measure.ts'
import { resident } from './processes.ts'

/** Node.js flags for a server that collects garbage on request. */
export const COLLECT: readonly string[] = [
  '--expose-gc',
  `--import=${fileURLToPath(new URL('./collect.mjs', import.meta.url))}`,
]
/** Maximum number of collections. */
const MAX_COLLECTIONS = 8
/**
 * From the third collection on, another one follows only if memory use has fallen to at most this
 * fraction of its previous minimum.
 */
const SHRINKAGE = 0.99
/**
 * Returns the resident memory in bytes after garbage collection. The first collection lets
 * finalizers run. V8 releases the young generation and empty pages only in a later collection.
 * Collections are therefore repeated until memory no longer shrinks.
 * @param pid a process that was started with `COLLECT`.
 */
export async function settled(pid: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let round = 1; round <= MAX_COLLECTIONS; round++) {
    process.kill(pid, 'SIGUSR2')
    await pause(1500)
    const bytes = resident(pid)
    if (round > 2 && bytes > least * SHRINKAGE) return Math.min(bytes, least)
    least = Math.min(bytes, least)
  }
  return least
}
