/** Loaded into a server whose memory is measured, with `--expose-gc`: it and its threads collect their garbage when it gets SIGUSR2. */
import { BroadcastChannel, isMainThread } from 'node:worker_threads'

const threads = new BroadcastChannel('collect')
threads.unref()
if (isMainThread) {
  process.on('SIGUSR2', () => {
    globalThis.gc?.()
    threads.postMessage('')
  })
} else threads.onmessage = () => globalThis.gc?.()
