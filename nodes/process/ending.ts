/**
 * Ends child processes when this process ends, even if a signal ends it. By default, the `exit`
 * handlers of a process do not run when a signal ends it.
 */
import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'

/**
 * Makes termination signals call `process.exit`, so that the `exit` handlers of this process run.
 */
export function endOnSignals(): void {
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => process.exit(128 + constants.signals[signal]))
}
/** Ends a child process when this process exits, unless the returned function is called first. */
export function endWithUs(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): () => void {
  const end = () => child.kill(signal)
  process.once('exit', end)
  return () => process.removeListener('exit', end)
}
