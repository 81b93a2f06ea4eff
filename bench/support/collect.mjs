/**
 * This module is loaded, together with `--expose-gc`, into a server whose memory is measured. On
 * SIGUSR2, the process and its threads collect garbage.
 */
import { BroadcastChannel, isMainThread } from 'node:worker_threads'

const threads = new BroadcastChannel('collect')
threads.unref()
if (isMainThread) {
  process.on('SIGUSR2', () => {
    globalThis.gc?.()
    threads.postMessage('')
  })
} else threads.onmessage = () => globalThis.gc?.()
