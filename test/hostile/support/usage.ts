/**
 * Measures the resources that a service uses: streams, sockets, followers and open files from its
 * metrics, and memory after garbage collection.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Service } from '../../support/service.ts'

export interface Usage {
  readonly sse: number
  readonly sockets: number
  readonly followers: number
  readonly files: number
  /**
   * The number of responses with status 500. Status 503 does not count, because it is expected from
   * a node that had no processor time for seconds.
   */
  readonly failed: number
}

const sum = (metrics: string, pattern: RegExp): number =>
  metrics
    .split('\n')
    .filter((line) => pattern.test(line))
    .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0)

export async function usage(s: Service): Promise<Usage> {
  const { text } = await s.raw('GET', '/metrics')
  return {
    sse: sum(text, /^baton_sse_streams_open /),
    sockets: sum(text, /^baton_worker_sockets_open /),
    followers: sum(text, /^baton_followers_open /),
    files: sum(text, /^process_open_fds /),
    failed: sum(text, /^baton_request_seconds_count\{.*status="500"/),
  }
}

/**
 * Polls for at most 15 s and returns the last values. Stops early once there are as many streams,
 * sockets and followers as in `base`, and at most 8 more files. Without `base`, stops once the
 * values no longer change.
 */
export async function settled(s: Service, base?: Usage): Promise<Usage> {
  let last = await usage(s)
  for (const end = Date.now() + 15_000; Date.now() < end; ) {
    await new Promise((again) => setTimeout(again, base ? 200 : 500))
    const now = await usage(s)
    const back = base
      ? now.sse === base.sse &&
        now.sockets === base.sockets &&
        now.followers === base.followers &&
        now.files <= base.files + 8
      : JSON.stringify(now) === JSON.stringify(last)
    last = now
    if (back) break
  }
  return last
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
/**
 * Returns the bytes used by the heap and by array buffers after garbage collection. The service and
 * the test share this process.
 */
export async function memory(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    collect()
    await new Promise((turn) => setImmediate(turn))
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
