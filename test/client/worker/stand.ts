/** A worker with a manual clock and with sockets whose other end the test controls. */

import { type JobLog, jobLog } from '../../../client/worker/logs.ts'
import type { JobEvent, WorkerOptions, WorkerState } from '../../../client/worker/options.ts'
import type { Clock, Dial, SocketEvents } from '../../../client/worker/ports.ts'
import { Worker } from '../../../client/worker.ts'
import type { ClaimedJob, Down, Up } from '../../../protocol/workers/socket.ts'

class ManualClock implements Clock {
  #now = 0
  #next = 0
  #ids = 0
  readonly #timers = new Map<number, { readonly at: number; readonly run: () => void }>()
  now(): number {
    return this.#now
  }
  after(ms: number, run: () => void): () => void {
    const id = this.#next++
    this.#timers.set(id, { at: this.#now + ms, run })
    return () => this.#timers.delete(id)
  }
  /** Returns the middle value, so that back-off pauses have no jitter. */
  random(): number {
    return 0.5
  }
  unique(): string {
    return String(++this.#ids)
  }
  get timers(): number {
    return this.#timers.size
  }
  /** Advances the time and fires due timers in order. */
  async pass(ms: number): Promise<void> {
    const end = this.#now + ms
    for (;;) {
      await settled()
      const [id, due] =
        [...this.#timers]
          .filter(([, { at }]) => at <= end)
          .sort(([a, x], [b, y]) => x.at - y.at || a - b)[0] ?? []
      if (id === undefined || !due) break
      this.#timers.delete(id)
      this.#now = due.at
      due.run()
    }
    this.#now = end
    await settled()
  }
}
/** Lets all promise callbacks run. */
export const settled = (): Promise<void> => new Promise((done) => setImmediate(done))

/** The server's end of one socket. */
class Peer {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly events: SocketEvents
  readonly sent: Up[] = []
  pings = 0
  /** Whether frames that were sent still wait in the process, as on a slow connection. */
  isSlow = false
  closedWith: number | 'dropped' | undefined
  /** Whether the server acknowledges draining immediately, as real servers do. */
  answersDraining = true
  constructor(url: string, headers: Readonly<Record<string, string>>, events: SocketEvents) {
    this.url = url
    this.headers = headers
    this.events = events
  }
  all<T extends Up['type']>(type: T): Extract<Up, { type: T }>[] {
    return this.sent.filter((frame): frame is Extract<Up, { type: T }> => frame.type === type)
  }
  last<T extends Up['type']>(type: T): Extract<Up, { type: T }> {
    const frame = this.all(type).at(-1)
    if (!frame) throw new Error(`no ${type} was sent`)
    return frame
  }
  say(frame: Down): void {
    this.events.frame(JSON.stringify(frame))
  }
  accept(token = 'wst_1', cadence = 20, frames?: string[]): void {
    this.events.opened()
    const { message_id } = this.last('worker.register')
    this.say({
      type: 'worker.registered',
      ...(message_id !== undefined && { message_id }),
      worker_session_token: token,
      lease: { lease_duration_seconds: cadence * 3, heartbeat_cadence_seconds: cadence },
      ...(frames && { frames }),
    })
  }
  async give(...jobs: ClaimedJob[]): Promise<void> {
    const { message_id } = this.last('jobs.claim')
    this.say({ type: 'jobs.claimed', ...(message_id !== undefined && { message_id }), jobs })
    await settled()
  }
  acknowledge(): void {
    for (const { job_id, message_id } of this.all('job.report'))
      this.say({ type: 'job.report.ack', job_id, ...(message_id !== undefined && { message_id }) })
  }
}

export interface Stand {
  readonly clock: ManualClock
  readonly peers: Peer[]
  readonly worker: Worker
  readonly states: WorkerState[]
  readonly events: JobEvent[]
  readonly lines: string[]
  peer(): Peer
}
/** @param creates throws an Error if no socket can be created to a URL. */
export function stand(
  options: Partial<WorkerOptions> & Pick<WorkerOptions, 'actions'>,
  creates: (url: string) => void = () => {},
): Stand {
  const clock = new ManualClock()
  const peers: Peer[] = []
  const states: WorkerState[] = []
  const events: JobEvent[] = []
  const lines: string[] = []
  const dial: Dial = (url, headers, socketEvents) => {
    creates(url)
    const peer = new Peer(url, headers, socketEvents)
    peers.push(peer)
    return {
      send: (text) => {
        const frame = JSON.parse(text) as Up
        peer.sent.push(frame)
        if (frame.type === 'worker.draining' && peer.answersDraining)
          queueMicrotask(() =>
            peer.say({
              type: 'worker.draining.ack',
              ...(frame.message_id !== undefined && { message_id: frame.message_id }),
            }),
          )
      },
      drained: () => !peer.isSlow,
      ping: () => void peer.pings++,
      close: (code) => {
        peer.closedWith = code
      },
      drop: () => {
        peer.closedWith ??= 'dropped'
      },
    }
  }
  const worker = new Worker(
    {
      url: 'http://a.test',
      key: 'bat_k',
      instance: 'box-1',
      ...options,
      onState: (state) => states.push(state),
      onJob: (event) => events.push(event),
      log: (line) => lines.push(line),
    },
    { clock, dial },
  )
  const peer = () => {
    const newest = peers.at(-1)
    if (!newest) throw new Error('nothing was dialled')
    return newest
  }
  return { clock, peers, worker, states, events, lines, peer }
}

let made = 0
/** Refuses a publication. Passed as `publish` to handlers that publish nothing. */
export const notPublished = (): Promise<never> =>
  Promise.reject(new Error('this handler publishes nothing'))
/** Creates the log of a handler, which appends its lines to `lines`. */
export const logTo = (lines: string[] = []): JobLog =>
  jobLog(
    (_, text) => void lines.push(text),
    () => {},
  )
export const jobOf = (action_name: string, more: Partial<ClaimedJob> = {}): ClaimedJob => ({
  id: `job_${++made}`,
  kind: 'action_execution',
  origin: 'loop_action_step',
  executor_kind: 'customer_worker',
  queue: 'default',
  action_name,
  spec: { parameters: {} },
  lease_token: `lt_${made}`,
  claim_attempt: 1,
  lease_duration_seconds: 60,
  heartbeat_cadence_seconds: 20,
  ...more,
})
export function deferred<T>(): {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
} {
  let resolve!: (value: T) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<T>((done, failed) => {
    resolve = done
    reject = failed
  })
  return { promise, resolve, reject }
}
