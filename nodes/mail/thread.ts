/** The program of a thread that `reader.ts` starts. It reads one message after the other. */
import { parentPort, workerData } from 'node:worker_threads'
import { resolverOf } from './authenticity.ts'
import { type Message, readMessage } from './read.ts'

const resolver = resolverOf(workerData as readonly string[])
parentPort?.on('message', async ({ raw, ...message }: Message) => {
  // A Buffer arrives as a Uint8Array.
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  parentPort?.postMessage(await readMessage({ ...message, raw: bytes }, resolver))
})
