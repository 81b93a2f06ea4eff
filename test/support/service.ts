/**
 * A real service for scenarios: a separate nats-server in a temporary folder, nodes in this
 * process, and real HTTP, SSE and WebSockets on loopback. Every successful reply is checked against
 * the row that was called: its status, its schema, and the absence of undocumented fields. Every
 * frame of a followed stream is checked against its description. `raw` skips the checks.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { Compile } from 'typebox/compile'
import type WebSocket from 'ws'
import type { Log } from '../../gateway/ports.ts'
import { type Config, readConfig } from '../../nodes/config.ts'
import { findServer } from '../../nodes/nats/server/install.ts'
import { type Server, startServer } from '../../nodes/nats/server/server.ts'
import { type RunningNode, startNode } from '../../nodes/node.ts'
import { withAdditions } from '../../protocol/additions.ts'
import { api, type RowName } from '../../protocol/api.ts'
import { type Row, routeOf } from '../../protocol/contract.ts'
import { undescribed } from './frames.ts'
import { send } from './http.ts'
import { silentLog } from './memory.ts'
import { openWorkerSocket } from './worker-socket.ts'

interface Answer<T = Record<string, unknown>> {
  readonly status: number
  readonly headers: Headers
  readonly body: T
}
export interface CallOptions {
  /** The root key by default. Null sends no credential. */
  readonly key?: string | null
  readonly headers?: Readonly<Record<string, string>>
  /** Base URL of the gateway; by default that of the first node. */
  readonly url?: string
}
/** A response as text, with its body parsed if it is JSON. */
export interface Raw {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Record<string, never>
}
export interface Frame {
  readonly id?: string
  readonly event?: string
  readonly data: Record<string, unknown>
}

export interface Service {
  readonly url: string
  readonly key: string
  readonly data: string
  readonly server: Server
  readonly nodes: readonly RunningNode[]
  /**
   * Calls a row of the API; `input` contains path parameters, query and body.
   * @throws if a 2xx response does not match the row, or another response has no error code.
   */
  call(name: RowName, input?: Record<string, unknown>, options?: CallOptions): Promise<Answer>
  /** Makes a call that must succeed, and returns the response body. */
  ok(
    name: RowName,
    input?: Record<string, unknown>,
    options?: CallOptions,
  ): Promise<Record<string, never>>
  /** Makes a call that must be refused with this status and code, and returns the error. */
  refused(
    name: RowName,
    input: Record<string, unknown>,
    status: number,
    code: string,
    options?: CallOptions,
  ): Promise<{ message: string; details: Record<string, never> }>
  /** Sends a request without the checks of a row. `path` is the whole path of the URL. */
  raw(
    method: string,
    path: string,
    options?: CallOptions & { readonly body?: string | Uint8Array },
  ): Promise<Raw>
  /**
   * Follows a stream until `until` returns true or the stream ends, and returns the frames.
   * @throws if neither happens within 20 s, if the request is refused, or for undescribed frames.
   */
  follow(
    name: RowName,
    input: Record<string, unknown>,
    until: (frame: Frame, all: readonly Frame[]) => boolean,
    options?: CallOptions,
  ): Promise<Frame[]>
  worker(
    frame?: Record<string, unknown>,
    options?: CallOptions & { project?: string },
  ): Promise<TestWorker>
  /** Starts another node with the same NATS servers. */
  add(settings?: Record<string, string>): Promise<RunningNode>
  /**
   * Stops every node, runs `between`, which may change the data of the nodes and of the server, and
   * starts one node.
   */
  restart(between?: () => Promise<void> | void, settings?: Record<string, string>): Promise<void>
  stop(): Promise<void>
}

/** A worker that the test controls: it sends and receives frames. */
export interface TestWorker {
  readonly frames: Record<string, unknown>[]
  readonly socket: WebSocket
  send(frame: Record<string, unknown>): void
  /** Waits for the first matching frame that arrives from now on. */
  wait(
    match: (frame: Record<string, unknown>) => boolean,
    what?: string,
  ): Promise<Record<string, never>>
  /** Claims until a job arrives, and returns it. */
  job(): Promise<Record<string, never>>
  report(
    job: Record<string, unknown>,
    outcome?: Record<string, unknown>,
  ): Promise<Record<string, never>>
  closed: Promise<{ code: number; reason: string }>
  close(): void
}

/**
 * Returns a message if a reply contains an addition that the call did not request, otherwise
 * undefined.
 */
function unasked(
  row: Row,
  input: Readonly<Record<string, unknown>>,
  body: unknown,
): string | undefined {
  const include = input['include'] as readonly string[] | undefined
  return row.shape.additions &&
    !isDeepStrictEqual(withAdditions(row.shape.additions, include, body), body)
    ? `an addition that was not asked for: ${Object.keys(row.shape.additions).join(', ')}`
    : undefined
}

const HEADERS = { accept: 'text/event-stream', 'content-type': 'application/json' }
const validators = new Map<string, ReturnType<typeof Compile>>()
/** Returns how a reply deviates from the schema of its row; undefined if it does not. */
export function undocumented(name: string, row: Row, body: unknown): string | undefined {
  if (!row.shape.reply) return body === undefined ? undefined : 'a body where none is documented'
  let validator = validators.get(name)
  if (!validator)
    validators.set(name, (validator = Compile(close(row.shape.reply) as typeof row.shape.reply)))
  return validator.Check(body) ? undefined : JSON.stringify(validator.Errors(body).slice(0, 3))
}
/** Returns the schema, with `additionalProperties: false` in objects that do not define it. */
function close(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(close)
  if (typeof schema !== 'object' || schema === null) return schema
  const next: Record<string, unknown> = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, close(value)]),
  )
  if (next['type'] === 'object' && next['properties'] && next['additionalProperties'] === undefined)
    next['additionalProperties'] = false
  return next
}

export function requestOf(
  row: Row,
  input: Record<string, unknown>,
): { method: string; path: string; body: string | undefined } {
  const rest: Record<string, unknown> = { ...input }
  const { method, path, slots } = routeOf(row)
  let filled = path
  for (const slot of slots) {
    filled = filled.replace(
      `:${slot}`,
      encodeURIComponent(String(rest[slot] ?? (slot === 'project' ? 'default' : ''))),
    )
    delete rest[slot]
  }
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(rest)) {
    if (row.shape.body && !(row.shape.additions && name === 'include')) continue
    delete rest[name]
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one))
  }
  const body =
    row.shape.body && !(row.shape.bodyOptional && Object.keys(rest).length === 0)
      ? JSON.stringify(rest)
      : undefined
  return { method, path: `/v1${filled}${query.size > 0 ? `?${query}` : ''}`, body }
}

/**
 * NATS servers that are already running, and the owner key of their installation. The servers are
 * stopped together with the service.
 */
interface Found {
  readonly servers: readonly Server[]
  readonly key: string
}
/**
 * Starts a service. Settings are environment variables, such as `{BATON_SHARDS: '2'}`.
 * @param log receives the log of its nodes.
 */
export async function service(
  settings: Record<string, string> = {},
  { found, log = silentLog }: { readonly found?: Found; readonly log?: Log } = {},
): Promise<Service> {
  const data = mkdtempSync(join(tmpdir(), 'baton-test-'))
  const { path } = await findServer(process.env)
  const servers = found?.servers ?? [
    await startServer({
      binary: path,
      data: join(data, 'nats'),
      port: 0,
      sync: settings['BATON_SYNC'] ?? '2m',
    }),
  ]
  const server = servers[0] as Server
  const nodes: RunningNode[] = []
  // By default, view threads are off, because each of them would load the TypeScript sources again.
  // The tests that start the program as a separate process use them. By default, no node is a host,
  // because a host would first start a process to test its sandbox.
  const add = async (more: Record<string, string> = {}): Promise<RunningNode> => {
    const read = readConfig(
      {
        BATON_RATE_KEY: '0',
        BATON_RATE_ORG: '0',
        BATON_PORT: '0',
        BATON_INBOX_DOMAIN: 'agents.test',
        BATON_ROLES: 'gateway,shards,views,executor',
        BATON_VIEW_THREADS: 'off',
        BATON_DATA: join(data, `node-${nodes.length}`),
        ...settings,
        ...more,
      },
      [],
    )
    if (!('config' in read)) throw new Error(read.faults.join('\n'))
    const config: Config = read.config
    const node = await startNode(
      config,
      { ...server.access, ...config.nats_access, servers: servers.map((one) => one.url) },
      log,
    )
    nodes.push(node)
    return node
  }
  const first = await add()
  let url = first.url ?? ''
  const key = found?.key ?? first.installed.generated?.key ?? settings['BATON_ROOT_KEY'] ?? ''
  const headersOf = (options: CallOptions): Record<string, string> => ({
    ...(options.key !== null && { authorization: `Bearer ${options.key ?? key}` }),
    ...options.headers,
  })
  const leave = async () => {
    for (const node of nodes.splice(0).reverse()) await node.stop()
  }

  const call: Service['call'] = async (name, input = {}, options = {}) => {
    const row: Row = api[name]
    const { method, path, body } = requestOf(row, input)
    const sent = {
      ...headersOf(options),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const answer = await send(method, (options.url ?? url) + path, sent, body)
    const { text } = answer
    const parsed = text === '' ? undefined : (JSON.parse(text) as Record<string, unknown>)
    if (answer.status >= 200 && answer.status < 300) {
      const documented = [row.shape.status ?? 200, ...(row.shape.alsoStatus ?? []), row.shape.bare]
      if (!documented.includes(answer.status))
        throw new Error(`${name} answered ${answer.status}, documented is ${documented.join(', ')}`)
      const fault =
        answer.status === 204 || answer.status === row.shape.bare
          ? text === ''
            ? undefined
            : 'a body with 204'
          : (undocumented(name, row, parsed) ?? unasked(row, input, parsed))
      if (fault !== undefined)
        throw new Error(
          `${name} answered what its row does not document: ${fault}\n${text.slice(0, 600)}`,
        )
    } else if (typeof (parsed?.['error'] as { code?: unknown } | undefined)?.code !== 'string')
      throw new Error(
        `${name} answered ${answer.status} without an error code: ${text.slice(0, 300)}`,
      )
    return { status: answer.status, headers: answer.headers, body: parsed ?? {} }
  }
  const ok: Service['ok'] = async (name, input, options) => {
    const answer = await call(name, input, options)
    if (answer.status >= 300) throw new Error(`${name} was refused: ${JSON.stringify(answer.body)}`)
    return answer.body as Record<string, never>
  }

  return {
    get url() {
      return url
    },
    key,
    data,
    server,
    nodes,
    call,
    ok,
    add,
    refused: async (name, input, status, code, options) => {
      const answer = await call(name, input, options)
      const error = answer.body['error'] as
        | { code: string; message: string; details?: Record<string, never> }
        | undefined
      if (answer.status !== status || error?.code !== code)
        throw new Error(
          `${name} should be refused with ${status} ${code}, ` +
            `but answered ${answer.status} ${JSON.stringify(answer.body).slice(0, 600)}`,
        )
      return { message: error.message, details: error.details ?? {} }
    },
    raw: async (method, path, options = {}) => {
      const answer = await fetch((options.url ?? url) + path, {
        method,
        headers: headersOf(options),
        redirect: 'manual',
        ...(options.body !== undefined && { body: options.body as string }),
      })
      const text = await answer.text()
      return {
        status: answer.status,
        headers: answer.headers,
        text,
        body:
          /json/.test(answer.headers.get('content-type') ?? '') && text !== ''
            ? JSON.parse(text)
            : {},
      }
    },
    restart: async (between, more) => {
      await leave()
      await between?.()
      url = (await add(more)).url ?? ''
    },
    follow: async (name, input, until, options = {}) => {
      const { method, path, body } = requestOf(api[name], input)
      const abort = new AbortController()
      const timer = setTimeout(() => abort.abort(), 20_000)
      const frames: Frame[] = []
      try {
        const headers = { ...HEADERS, ...headersOf(options) }
        const init = { method, headers, body: body ?? null, signal: abort.signal }
        const answer = await fetch((options.url ?? url) + path, init)
        if (!answer.ok || !answer.body)
          throw new Error(`${name} answered ${answer.status}: ${await answer.text()}`)
        for await (const { id, event, data: text } of answer.body
          .pipeThrough(new TextDecoderStream())
          .pipeThrough(new EventSourceParserStream()) as unknown as AsyncIterable<{
          id?: string
          event?: string
          data: string
        }>) {
          const frame: Frame = {
            ...(id !== undefined && { id }),
            ...(event !== undefined && { event }),
            data: JSON.parse(text),
          }
          const fault = undescribed(name, event, frame.data)
          if (fault !== undefined)
            throw new Error(`${name} sent a frame ${event} that is not described: ${fault}`)
          frames.push(frame)
          if (until(frame, frames)) break
        }
      } catch (error) {
        if (!abort.signal.aborted) throw error
        throw new Error(
          `${name}: the awaited frame did not come within 20 s; seen: ${frames.map((frame) => frame.event).join(' ')}`,
        )
      } finally {
        clearTimeout(timer)
        abort.abort()
      }
      return frames
    },
    worker: (frame = {}, options = {}) =>
      testWorker(options.url ?? url, options.key ?? key, options.project ?? 'default', frame),
    stop: async () => {
      await leave()
      await Promise.all(servers.map((one) => one.stop()))
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/**
 * Connects a worker over a real socket.
 * @param frame fields of the registration. With `type: null`, the worker does not register.
 */
export async function testWorker(
  url: string,
  key: string,
  project: string,
  frame: Record<string, unknown>,
): Promise<TestWorker> {
  const frames: Record<string, unknown>[] = []
  const waiting = new Set<{
    match: (frame: Record<string, unknown>) => boolean
    done: (frame: Record<string, unknown>) => void
  }>()
  const received = (text: unknown): void => {
    const got = JSON.parse(String(text)) as Record<string, unknown>
    frames.push(got)
    for (const waiter of [...waiting])
      if (waiter.match(got)) {
        waiting.delete(waiter)
        waiter.done(got)
      }
  }
  const address = `${url.replace('http', 'ws')}/v1/projects/${project}/workers/socket`
  const socket = await openWorkerSocket(address, key, (one) => one.on('message', received))
  const closed = new Promise<{ code: number; reason: string }>((done) =>
    socket.on('close', (code, reason) => done({ code, reason: String(reason) })),
  )
  let ids = 0
  const send = (out: Record<string, unknown>) => socket.send(JSON.stringify(out))
  const wait: TestWorker['wait'] = (match, what = 'a frame') =>
    new Promise((done, failed) => {
      const timer = setTimeout(() => {
        waiting.delete(waiter)
        failed(
          new Error(
            `${what} did not come within 15 s; seen: ${frames.map((seen) => seen['type']).join(' ')}`,
          ),
        )
      }, 15_000)
      const waiter = {
        match,
        done: (got: Record<string, unknown>) => {
          clearTimeout(timer)
          done(got as Record<string, never>)
        },
      }
      waiting.add(waiter)
    })
  const worker: TestWorker = {
    frames,
    socket,
    send,
    wait,
    closed,
    close: () => socket.close(),
    job: async () => {
      for (;;) {
        const message_id = `claim_${ids++}`
        const answer = wait(
          (got) => got['type'] === 'jobs.claimed' && got['message_id'] === message_id,
          'jobs.claimed',
        )
        send({ type: 'jobs.claim', message_id, available_slots: 1 })
        const [job] = (await answer)['jobs'] as unknown as Record<string, never>[]
        if (job) return job
      }
    },
    report: (job, outcome = { result: {} }) => {
      const message_id = `report_${ids++}`
      const ack = wait(
        (got) => got['type'] === 'job.report.ack' && got['message_id'] === message_id,
        'job.report.ack',
      )
      send({
        type: 'job.report',
        message_id,
        job_id: job['id'],
        lease_token: job['lease_token'],
        ...outcome,
      })
      return ack
    },
  }
  if (frame['type'] !== null) {
    const registered = wait(
      (got) => got['type'] === 'worker.registered' || got['type'] === 'error',
      'worker.registered',
    )
    send({
      type: 'worker.register',
      message_id: 'register',
      worker_instance_id: `w-${Math.random().toString(36).slice(2)}`,
      concurrency_limit: 4,
      ...frame,
    })
    await registered
  }
  return worker
}
