/**
 * Reads messages in separate threads with a deadline and a limited heap. The parsers need time and
 * memory that grow with the square of the length of a hostile message. Such a message therefore
 * neither blocks the process nor exhausts its memory.
 *
 * Invariants:
 * R1. A reader has at most `MAX_THREADS` threads. Further messages wait in FIFO order.
 * R2. A thread reads one message at a time. It ends when it does not answer in time, when its heap
 *     exceeds the limit, or when it fails. Otherwise the next message reuses it.
 * R3. The result is the content of the message, or the reason why it can never be read. If a thread
 *     fails for another reason, the call rejects, and the message may be read later.
 */
import { Worker } from 'node:worker_threads'
import { createSemaphore } from '../../gateway/files/semaphore.ts'
import { threadProgram } from '../process/thread-program.ts'
import type { Message, MessageRead } from './read.ts'

export interface MailReader {
  /** @throws Error when the thread fails, or does not answer in time. */
  read(message: Message): Promise<MessageRead>
  /** Ends the threads, and rejects the calls in progress. */
  stop(): Promise<void>
}

const MAX_THREADS = 2
/**
 * Maximum time for a message in milliseconds, without the time for its size. An ordinary message of
 * 10 MiB takes half a second.
 */
const DEADLINE_MS = 15_000
/** Additional milliseconds for each MiB of a message. */
const MS_PER_MIB = 1000
/**
 * Limits of the heap of a thread, in MiB. A thread may end the process when it exceeds them, so
 * `raw-message.ts` refuses the messages that would need more.
 */
const HEAP = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 48 }
/** Additional MiB of the heap for each MiB of the largest message, because texts are copied. */
const HEAP_PER_MIB = 8

const program = threadProgram(import.meta.filename, 'mail', new URL('./thread.ts', import.meta.url))

interface Reading {
  readonly thread: Worker
  resolve: (read: MessageRead) => void
  reject: (error: Error) => void
  ended: boolean
}

/**
 * Creates a reader.
 * @param max maximum size of a message in bytes.
 * @param dns DNS servers for the authentication; those of this machine if the list is empty.
 * @param later calls a function after a delay. Returns a function that cancels the call.
 */
export function createMailReader(
  max: number,
  dns: readonly string[],
  later: (ms: number, run: () => void) => () => void,
): MailReader {
  const resourceLimits = {
    ...HEAP,
    maxOldGenerationSizeMb: HEAP.maxOldGenerationSizeMb + (max / 2 ** 20) * HEAP_PER_MIB,
  }
  const turns = createSemaphore(MAX_THREADS)
  const all = new Set<Reading>()
  const idle: Reading[] = []

  function start(): Reading {
    const thread = new Worker(program, { workerData: dns, resourceLimits })
    const reading: Reading = { thread, resolve: () => {}, reject: () => {}, ended: false }
    const end = (): void => {
      reading.ended = true
      all.delete(reading)
    }
    thread.on('message', (read: MessageRead) => reading.resolve(read))
    thread.on('error', (error: NodeJS.ErrnoException) => {
      end()
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY')
        reading.resolve({ error: 'needs too much memory' })
      else reading.reject(error)
    })
    thread.on('exit', () => {
      end()
      reading.reject(new Error('the thread that reads e-mail has ended'))
    })
    all.add(reading)
    return reading
  }
  /** Returns a thread that has not ended. */
  function take(): Reading {
    for (let reading = idle.pop(); reading; reading = idle.pop()) if (!reading.ended) return reading
    return start()
  }

  return {
    async read(message) {
      const release = await turns.acquire(1)
      const reading = take()
      let late = false
      let cancel = (): void => {}
      try {
        return await new Promise<MessageRead>((resolve, reject) => {
          Object.assign(reading, { resolve, reject })
          const allowed = DEADLINE_MS + (message.raw.length / 2 ** 20) * MS_PER_MIB
          cancel = later(allowed, () => {
            late = true
            // A machine that is overloaded or was suspended may read the message later.
            reject(new Error('a message took too long to read'))
          })
          reading.thread.ref()
          reading.thread.postMessage(message)
        })
      } finally {
        cancel()
        if (late) await reading.thread.terminate()
        else if (!reading.ended) {
          // A thread that waits for messages does not keep the process alive.
          reading.thread.unref()
          idle.push(reading)
        }
        release()
      }
    },
    async stop() {
      await Promise.all([...all].map(({ thread }) => thread.terminate()))
    },
  }
}
