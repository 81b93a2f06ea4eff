/** Resident memory of a server, measured after garbage collection. */
import { fileURLToPath } from 'node:url'
import { pause } from './measure.ts'
import { resident } from './processes.ts'

/** Node.js flags for a server that collects garbage on request. */
export const COLLECT: readonly string[] = [
  '--expose-gc',
  `--import=${fileURLToPath(new URL('./collect.mjs', import.meta.url))}`,
]
/**
 * `ROUNDS` is the maximum number of collections. From the third one on, another collection follows
 * only if memory shrank to at most the fraction `LESS` of its previous minimum.
 */
const [ROUNDS, LESS] = [8, 0.99]
/**
 * Returns resident bytes after garbage collection. The first collection lets finalizers run. V8
 * releases the young generation and empty pages only in a later collection. Collections are
 * therefore repeated until memory no longer shrinks.
 * @param pid a process that was started with `COLLECT`.
 */
export async function settled(pid: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let round = 1; round <= ROUNDS; round++) {
    process.kill(pid, 'SIGUSR2')
    await pause(1500)
    const bytes = resident(pid)
    if (round > 2 && bytes > least * LESS) return Math.min(bytes, least)
    least = Math.min(bytes, least)
  }
  return least
}
