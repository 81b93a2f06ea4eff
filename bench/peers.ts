/** Peers: measured beside Baton where they are installed, left out with a sentence where they are not. */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Measured } from './measure.ts'

const folder = join(import.meta.dirname, 'peers')
const run = promisify(execFile)

/** Why BullMQ cannot be measured here, or nothing. */
export function bullmqMissing(): string | undefined {
  if (!existsSync(join(folder, 'node_modules', 'bullmq'))) return 'BullMQ is left out: install it with npm install --prefix bench/peers'
  try {
    execFileSync('redis-server', ['--version'])
    return undefined
  } catch {
    return 'BullMQ is left out: there is no redis-server on the PATH (Debian: apt-get install redis-server)'
  }
}
/** Measure BullMQ once. @param fsync Redis's `appendfsync`. */
export async function bullmq(fsync: 'always' | 'everysec', { count, idle }: { count: number; idle: number }): Promise<Measured> {
  const { stdout } = await run(process.execPath, [...process.execArgv, join(folder, 'bullmq.mjs'), fsync, String(count), String(idle)])
  return JSON.parse(stdout) as Measured
}
