/**
 * Helpers for tests of workers: sending frames and waiting for frames, opening sockets with any
 * credential, and small runs that create jobs.
 */
import WebSocket from 'ws'
import type { Service, TestWorker } from '../../support/service.ts'

export type Received = Record<string, never>
type Outgoing = Readonly<Record<string, unknown>>

let asked = 0
/** Sends a frame and returns the frame of the type `answer` with the same message id. */
export function ask(worker: TestWorker, frame: Outgoing, answer: string): Promise<Received> {
  const message_id = (frame['message_id'] as string | undefined) ?? `ask_${asked++}`
  const got = worker.wait(
    (seen) => seen['type'] === answer && seen['message_id'] === message_id,
    answer,
  )
  worker.send({ message_id, ...frame })
  return got
}
/** Sends a frame that must be rejected, and returns the code of the error frame that answers it. */
export const faultOf = async (worker: TestWorker, frame: Outgoing): Promise<string> =>
  ((await ask(worker, frame, 'error'))['error'] as unknown as { code: string }).code
/** Returns the first frame of the given type that was received, or waits for one. */
export const seen = async (worker: TestWorker, type: string): Promise<Received> =>
  (worker.frames.find((frame) => frame['type'] === type) as Received | undefined) ??
  worker.wait((frame) => frame['type'] === type, type)

/** Sends one claim and returns the claimed jobs. */
export const claim = async (worker: TestWorker, more: Outgoing = {}): Promise<Received[]> =>
  (await ask(worker, { type: 'jobs.claim', ...more }, 'jobs.claimed'))[
    'jobs'
  ] as unknown as Received[]
export const beat = (worker: TestWorker, job: Received): Promise<Received> =>
  ask(
    worker,
    { type: 'job.heartbeat', job_id: job['id'], lease_token: job['lease_token'] },
    'job.heartbeat.ack',
  )

/** Opens a socket. Returns the HTTP status, and the socket unless the upgrade was rejected. */
export function open(
  url: string,
  options: {
    project?: string
    headers?: Record<string, string>
    protocols?: string[]
    path?: string
  } = {},
): Promise<{ status: number; socket?: WebSocket }> {
  const { project = 'default', path = 'workers/socket' } = options
  const address = `${url.replace('http', 'ws')}/v1/projects/${project}/${path}`
  const socket = new WebSocket(address, options.protocols ?? [], { headers: options.headers ?? {} })
  return new Promise((done, failed) => {
    socket.on('open', () => done({ status: 101, socket }))
    socket.on('unexpected-response', (request, response) => {
      request.destroy()
      done({ status: response.statusCode ?? 0 })
    })
    socket.on('error', failed)
  })
}
/** Registers on an open socket. Returns the first frame received, or how the socket was closed. */
export function registered(socket: WebSocket, instance: string): Promise<Record<string, unknown>> {
  const first = new Promise<Record<string, unknown>>((done) => {
    socket.once('message', (text) => done(JSON.parse(String(text)) as Record<string, unknown>))
    socket.once('close', (code, reason) => done({ type: 'closed', code, reason: String(reason) }))
  })
  socket.send(JSON.stringify({ type: 'worker.register', worker_instance_id: instance }))
  return first
}

interface Wanted {
  readonly attempts?: number
  readonly environment_id?: string
  readonly parameters?: Outgoing
  readonly start?: Outgoing
}
export const start = (
  s: Service,
  action_name: string,
  { attempts, environment_id, parameters, start: more }: Wanted = {},
): Promise<Received> =>
  s.ok('run.start', {
    spec: {
      steps: [
        {
          id: 'do',
          kind: 'action',
          config: {
            action_name,
            ...(environment_id !== undefined && { environment_id }),
            ...(parameters && { parameters }),
          },
          ...(attempts !== undefined && { retry: { max_attempts: attempts } }),
        },
      ],
    },
    ...more,
  })
export const runOf = (s: Service, run: Received): Promise<Received> =>
  s.ok('run.get', { id: run['id'] })
/** Returns the only job of a run. */
export async function jobOf(s: Service, run: Received): Promise<Received> {
  const [job] = (await s.ok('run.jobs', { id: run['id'], include: ['waiting_on'] }))[
    'items'
  ] as unknown as Received[]
  return job as Received
}
/** Returns the types of the first 200 events of a run's timeline. */
export async function story(s: Service, run: Received, url?: string): Promise<string[]> {
  const page = await s.ok(
    'run.events',
    { id: run['id'], limit: 200 },
    url === undefined ? {} : { url },
  )
  return (page['items'] as unknown as { event_type: string }[]).map(({ event_type }) => event_type)
}
/**
 * Settings that shorten the timing of workers, so that leases, polls and takeovers end within
 * seconds.
 */
export const hasty = {
  BATON_WORKER_CADENCE: '1s',
  BATON_WORKER_LEASE: '3s',
  BATON_WORKER_POLL: '1s',
  BATON_WORKER_STALE: '4s',
  BATON_WORKER_TAKEOVER: '2s',
} as const
