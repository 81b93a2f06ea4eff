/** Runs in a thread that `converter.ts` starts: converts one file, and then ends. */
import { parentPort, workerData } from 'node:worker_threads'
import { markdownOf } from './convert.ts'
import type { Conversion } from './converter.ts'
import { DocumentFault } from './fault.ts'

const outcome = await markdownOf(workerData as Uint8Array).then(
  (markdown): Conversion => ({ markdown }),
  (error: unknown): Conversion => {
    if (error instanceof DocumentFault) return { error: error.message }
    // Libraries can throw any error on hostile input. The error is returned as the outcome, because
    // another attempt would fail too.
    const why = error instanceof Error ? error.message : String(error)
    return { error: `The file cannot be read: ${why.slice(0, 500)}` }
  },
)
parentPort?.postMessage(outcome)
