/** What a server holds: resident memory, asked after it has collected its garbage. */
import { fileURLToPath } from 'node:url'
import { pause } from './measure.ts'
import { resident } from './processes.ts'

/** Flags of Node for a server that can be told to collect. */
export const COLLECT: readonly string[] = [
  '--expose-gc',
  `--import=${fileURLToPath(new URL('./collect.mjs', import.meta.url))}`,
]
/** Collections at most, and how much less memory tells that the last one was worth another. */
const [ROUNDS, LESS] = [8, 0.99]
/**
 * Bytes that are resident after collecting. The first collection lets finalizers run, and V8 gives the young generation and
 * empty pages back with a later one: so again, until a collection changes nothing any more.
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
