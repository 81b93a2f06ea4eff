/**
 * This module is loaded into the processes whose cost is measured, and into their threads. Each
 * thread listens on a socket in the folder `BENCH_PROBE_FOLDER`, named `<process>-<thread>`. Every
 * connection sends one command as a line of JSON and receives one line of JSON. `probes.ts` is the
 * client. The probe has no cost in a thread that receives no command.
 *
 * Allocation is counted without sampling: V8 reports the used heap before and after each garbage
 * collection, so the growth between two collections is the allocated amount. Memory outside of the
 * heap, such as the content of buffers, is not counted.
 */
import { readlinkSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { GCProfiler, getHeapStatistics } from 'node:v8'
import { isMainThread, threadId } from 'node:worker_threads'

/** Microseconds between two samples of a CPU profile. */
const SAMPLING_US = 500
/** Bytes between two samples of an allocation profile, on average. */
const SAMPLING_BYTES = 32 * 1024

/** @type {GCProfiler | undefined} */
let collections
let before = 0
/** @type {Session | undefined} */
let session

/**
 * Sends a command to the inspector of this thread, which answers synchronously.
 * @param {string} method
 * @param {object} [params]
 * @returns {any}
 */
function inspect(method, params = {}) {
  if (!session) {
    session = new Session()
    session.connect()
  }
  /** @type {any} */
  let answer
  session.post(method, params, (error, result) => {
    if (error) throw error
    answer = result
  })
  return answer
}

/** @type {Record<string, (command: { file: string }) => unknown>} */
const commands = {
  count: () => {
    collections = new GCProfiler()
    collections.start()
    before = getHeapStatistics().used_heap_size
    return {}
  },
  counted: () => {
    const { statistics } = collections?.stop() ?? { statistics: [] }
    let allocated = 0
    let used = before
    let pause = 0
    for (const { cost, beforeGC, afterGC } of statistics) {
      allocated += beforeGC.heapStatistics.usedHeapSize - used
      used = afterGC.heapStatistics.usedHeapSize
      pause += cost
    }
    allocated += getHeapStatistics().used_heap_size - used
    collections = undefined
    return { allocated, pause }
  },
  sample: () => {
    inspect('Profiler.enable')
    inspect('Profiler.setSamplingInterval', { interval: SAMPLING_US })
    inspect('Profiler.start')
    return {}
  },
  sampled: ({ file }) => {
    writeFileSync(file, JSON.stringify(inspect('Profiler.stop').profile))
    return {}
  },
  allocations: () => {
    inspect('HeapProfiler.startSampling', {
      samplingInterval: SAMPLING_BYTES,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    })
    return {}
  },
  allocated: ({ file }) => {
    writeFileSync(file, JSON.stringify(inspect('HeapProfiler.stopSampling').profile))
    return {}
  },
}

/** Returns the Linux thread id of this thread: the last part of `<process>/task/<thread>`. */
const task = () => Number(basename(readlinkSync('/proc/thread-self')))
const folder = process.env['BENCH_PROBE_FOLDER']
if (folder !== undefined)
  createServer((socket) => {
    socket.unref()
    socket.once('data', (line) => {
      const command = JSON.parse(line.toString())
      const result = commands[command.name]?.(command)
      const program = isMainThread ? 'main' : basename(process.argv[1] ?? '')
      socket.end(`${JSON.stringify({ task: task(), program, result })}\n`)
    })
    socket.on('error', () => {})
  })
    .listen(join(folder, `${process.pid}-${threadId}`))
    .unref()
