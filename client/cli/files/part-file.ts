/** Removes incomplete files when the user interrupts a command. */
import { rmSync } from 'node:fs'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Deletes a file if a signal ends the process.
 * @returns a function that keeps the file from now on.
 */
export function deleteOnSignal(file: string): () => void {
  const keep = () => {
    for (const signal of SIGNALS) process.off(signal, end)
  }
  const end = (signal: NodeJS.Signals) => {
    keep()
    rmSync(file, { force: true })
    process.kill(process.pid, signal)
  }
  for (const signal of SIGNALS) process.on(signal, end)
  return keep
}
