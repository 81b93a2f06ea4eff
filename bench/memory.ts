/** What a server holds: resident memory, asked after it has collected its garbage. */
import { fileURLToPath } from 'node:url'
import { pause } from './measure.ts'
import { resident } from './processes.ts'

/** Flags of Node for a server that can be told to collect. */
export const COLLECT: readonly string[] = ['--expose-gc', `--import=${fileURLToPath(new URL('./collect.mjs', import.meta.url))}`]
/** Bytes that are resident after collecting, twice, since the first collection lets finalizers run; then memory goes back to the system. */
export async function settled(pid: number): Promise<number> {
  for (let i = 0; i < 2; i++) {
    process.kill(pid, 'SIGUSR2')
    await pause(1500)
  }
  return resident(pid)
}
