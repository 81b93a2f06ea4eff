/**
 * Converts Office files to Markdown, each in a separate thread with a deadline and a limited heap.
 * A hostile file therefore cannot block the process or exhaust its memory.
 *
 * Invariants:
 * C1. A thread ends when it has answered, at its deadline, when its heap exceeds the limit, or when
 *     the caller aborts.
 * C2. A converter has at most `MAX_CONCURRENT` threads. Further conversions wait in FIFO order, and
 *     their bytes are read only when they start.
 * C3. For any content of a file, the conversion resolves with Markdown or an error message. It
 *     rejects only when the bytes cannot be read, the thread fails, or the caller aborts.
 */
import { type ResourceLimits, Worker } from 'node:worker_threads'
import { createSemaphore } from '../../../gateway/files/semaphore.ts'
import { threadProgram } from '../../process/thread-program.ts'

/** The outcome of a conversion. `error` is a message for the owner of the file. */
export type Conversion = { readonly markdown: string } | { readonly error: string }
export interface Converter {
  /**
   * Converts a file. Resolves with undefined when the file does not exist.
   * @param read reads the bytes. Resolves with undefined when the file does not exist.
   * @param signal ends the conversion.
   * @throws the error of `read`, and the `reason` of an aborted signal.
   */
  convert(
    read: () => Promise<Uint8Array | undefined>,
    signal?: AbortSignal,
  ): Promise<Conversion | undefined>
}

/** Maximum number of concurrent conversions of a converter. */
const MAX_CONCURRENT = 2
/** Maximum duration of a conversion in milliseconds. */
const DEADLINE_MS = 60_000
/**
 * Limits of the heap of a thread, in MiB. A thread may end the process when it exceeds them, so
 * `xml.ts` and `document.ts` refuse the files that would need more.
 */
const HEAP: ResourceLimits = { maxOldGenerationSizeMb: 384, maxYoungGenerationSizeMb: 48 }

const tooLong = (ms: number): Conversion => ({
  error: `The conversion took longer than ${ms / 1000} seconds. Split the file.`,
})
const tooComplex: Conversion = {
  error: 'The file is too complex: its conversion needs too much memory. Split the file.',
}

const program = threadProgram(
  import.meta.filename,
  'documents',
  new URL('./thread.ts', import.meta.url),
)

/**
 * Creates a converter.
 * @param later calls a function after a delay. Returns a function that cancels the call.
 */
export function createConverter(
  later: (ms: number, run: () => void) => () => void,
  { deadline = DEADLINE_MS, heap = HEAP } = {},
): Converter {
  const turns = createSemaphore(MAX_CONCURRENT)
  return {
    async convert(read, signal) {
      const release = await turns.acquire(1)
      try {
        signal?.throwIfAborted()
        const bytes = await read()
        return bytes && (await inThread(bytes, later, deadline, heap, signal))
      } finally {
        release()
      }
    },
  }
}

async function inThread(
  bytes: Uint8Array,
  later: (ms: number, run: () => void) => () => void,
  deadline: number,
  resourceLimits: ResourceLimits,
  signal: AbortSignal | undefined,
): Promise<Conversion> {
  signal?.throwIfAborted()
  const thread = new Worker(program, { workerData: bytes, resourceLimits })
  let cancel = () => {}
  let abort = () => {}
  try {
    return await new Promise((resolve, reject) => {
      cancel = later(deadline, () => resolve(tooLong(deadline)))
      abort = () => reject(signal?.reason)
      signal?.addEventListener('abort', abort)
      thread.on('message', resolve)
      thread.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') resolve(tooComplex)
        else reject(error)
      })
      thread.on('exit', () => reject(new Error('a conversion ended without an answer')))
    })
  } finally {
    cancel()
    signal?.removeEventListener('abort', abort)
    await thread.terminate()
  }
}
