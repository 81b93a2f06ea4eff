/**
 * Keeps the write-ahead logs of views short without blocking the process. SQLite would checkpoint a
 * long log during the commit that makes the log exceed the limit. That took 110 to 165 ms for every
 * 32 MiB under load (2 cores, Node 20). Instead, a thread checkpoints the logs after commits.
 * SQLite's automatic checkpoint remains as a fallback (`migrate.ts`).
 */
import { statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'

/** Minimum size of a log that is checkpointed, in bytes. */
const MIN_CHECKPOINT_BYTES = 4 * 2 ** 20

export interface Logs {
  /** Must be called after each commit to this file. */
  saved(file: string): void
  /**
   * Ends the thread and closes its connections. Must be called after the views have closed their
   * files.
   */
  stop(): Promise<void>
}

/**
 * Starts the thread that checkpoints logs.
 * @param failed is called with the error that terminated the thread. SQLite then checkpoints the
 * logs itself.
 */
export function startLogs(failed: (error: Error) => void): Logs {
  const busy = new Set<string>()
  let closed = () => {}
  let thread: Worker | undefined = new Worker(new URL('../log-thread.mjs', import.meta.url), {
    execArgv: [],
  })
  thread.unref()
  thread.on('message', (file: string | undefined) => {
    if (file === undefined) closed()
    else busy.delete(file)
  })
  thread.on('error', failed)
  thread.on('exit', () => {
    thread = undefined
    closed()
  })
  return {
    saved(file) {
      if (
        !thread ||
        busy.has(file) ||
        (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) < MIN_CHECKPOINT_BYTES
      )
        return
      busy.add(file)
      thread.postMessage(file)
    },
    async stop() {
      const last = thread
      if (!last) return
      // The process must stay alive until the thread has answered.
      last.ref()
      await new Promise<void>((done) => {
        closed = done
        last.postMessage(undefined)
      })
      await last.terminate()
    },
  }
}
