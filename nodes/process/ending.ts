/** What a process starts ends with it, also when a signal stops it before its time: by itself, a signal ends it without a word to anybody. */
import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'

/** Take signals for the end of this process, so that its `exit` handlers run. */
export function endOnSignals(): void {
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => process.exit(128 + constants.signals[signal]))
}
/** End a process when this one ends, unless the returned function is called before. */
export function endWithUs(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): () => void {
  const end = () => child.kill(signal)
  process.once('exit', end)
  return () => process.removeListener('exit', end)
}
