/** A running gateway with real sockets and a manual clock. Tests can script actors and views. */
import http from 'node:http'
import type { GatewaySettings, Outcome, World } from '../../../gateway/ports.ts'
import { createGateway, type Gateway } from '../../../gateway/server.ts'
import { type Command, feedKinds, lastCursor, type PlacedEntry } from '../../../protocol/entry.ts'
import { type FieldError, refuse } from '../../../protocol/errors.ts'
import { makeId, type Prefix } from '../../../protocol/ids.ts'
import type { Preview } from '../../../protocol/sessions/transcript/previews.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { edge, PRJ } from './given.ts'

export const RUN = 'run_01AAAAAAAAAAAAAAAAAAAAAA0C'
const settings: GatewaySettings = {
  brand: 'Service',
  key_prefix: 'bat',
  shards: 4,
  deadline: 1000,
  rate: { key: 0, organization: 0, window_seconds: 60 },
  timing: defaultTiming,
  keepalive: 15_000,
  cors: ['https://console.example'],
  version: '0.1.0',
  models: { default_model: '', providers: [] },
  sessions: { age: 55_000, idle: 2000 },
  artifacts: { max_bytes: 1_048_576, upload_ms: 90_000 },
}

export interface Body {
  readonly id: string
  readonly key: string
  readonly key_prefix: string
  readonly has_more: boolean
  readonly next_cursor: string
  readonly items: readonly { readonly id: string }[]
  readonly results: readonly unknown[]
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly tags: readonly string[] }>>>
  >
  readonly error: {
    readonly code: string
    readonly details: { readonly fields: readonly FieldError[] }
  }
}
interface Question {
  readonly id: string
  readonly run_id: string
  readonly after: number
  readonly limit: number
  readonly appended?: true
}

export interface Got {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
  readonly body: Body
}

/** Starts a gateway. Tests script commands in `on` and views in `views`, by name. */
export async function gateway(more: Partial<GatewaySettings> = {}) {
  const it = edge()
  const { world: base } = it
  const commands: Command[] = []
  const questions: { project: string; name: string; input: Question }[] = []
  const listeners = new Map<string, Set<(placed: PlacedEntry) => void>>()
  const listen = (key: string, heard: (placed: PlacedEntry) => void) => {
    const set = listeners.get(key) ?? new Set()
    listeners.set(key, set.add(heard))
    return () => void set.delete(heard)
  }
  const counted = new Map<string, number>()
  const count = (name: string, by = 1) => counted.set(name, (counted.get(name) ?? 0) + by)
  const on: Record<string, (command: Command) => Outcome | Promise<Outcome>> = {}
  const views: Record<string, (input: Question) => unknown> = {}
  const forgotten: string[] = []
  const previewed = new Map<string, (pieces: readonly Preview[]) => void>()
  const logs: object[] = []
  const answer = async (project: string, name: string, input: unknown) => {
    questions.push({ project, name, input: input as Question })
    return views[name]?.(input as Question) ?? refuse('not_found')
  }
  const decided = base.commandRow
  const command = async (command: Command): Promise<Outcome> => {
    commands.push(command)
    const scripted = on[command.name]
    return scripted ? scripted(command) : decided(command)
  }
  const sides = {
    settings: { ...settings, ...more },
    id: (prefix: Prefix, from?: string) =>
      makeId(
        prefix,
        base.now(),
        Buffer.from(from === undefined ? base.random(10) : base.seal(from)),
      ),
    command,
    commandRow: command,
    view: answer,
    viewRow: answer,
    everywhere: async (name: string, input: unknown) => [await answer('*', name, input)],
    live: (project: string, kind: string, id: string, heard: (placed: PlacedEntry) => void) =>
      listen(`${project} ${kind} ${id}`, heard),
    moved: (project: string, heard: (cursor: number) => void) =>
      listen(`${project} moved`, (placed) => heard(lastCursor(placed))),
    async forget(project: string) {
      forgotten.push(project)
      it.directory.forget(project)
    },
    onPreview(project: string, followed: string, heard: (pieces: readonly Preview[]) => void) {
      previewed.set(`${project} ${followed}`, heard)
      return () => void previewed.delete(`${project} ${followed}`)
    },
    onMessage() {},
    onOffer: () => () => {},
    demand() {},
    preview() {},
    onPreviewed: () => () => {},
    previewed: async () => undefined,
    unready: async () => [] as string[],
    metrics: async () => 'up 1\n',
    log: {
      ...base.log,
      debug: (fields: object) => void logs.push(fields),
      warn: (fields: object) => void logs.push(fields),
    },
    count: {
      request: (operation: string, status: number) => count(`${operation} ${status}`),
      open: (what: string, change: number) => count(what, change),
      inc: (name: string) => count(name),
    },
  }
  const world = Object.assign(base, sides) as World
  const server: Gateway = createGateway(world, it.directory)
  const port = await server.listen('127.0.0.1', 0)

  /** Sends one request. A body other than a string or bytes is sent as JSON. */
  const call = (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Got> =>
    new Promise((resolve, reject) => {
      const content =
        body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
          ? body
          : JSON.stringify(body)
      const request = http.request(
        {
          host: '127.0.0.1',
          port,
          method,
          path,
          agent: false,
          headers: {
            authorization: `Bearer ${it.root}`,
            ...(content !== undefined && {
              'content-type': 'application/json',
              'content-length': String(Buffer.byteLength(content)),
            }),
            ...headers,
          },
        },
        (response) => {
          let text = ''
          response.on('data', (chunk) => {
            text += chunk
          })
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text,
              body:
                /json/.test(response.headers['content-type'] ?? '') && text !== ''
                  ? (JSON.parse(text) as Body)
                  : ({} as Body),
            }),
          )
        },
      )
      request.on('error', reject)
      request.end(content)
    })
  /** Opens a stream. Its `text` grows as data arrives. */
  const stream = (path: string, headers: Record<string, string> = {}) => {
    const opened = {
      text: '',
      status: 0,
      headers: {} as http.IncomingHttpHeaders,
      ended: false,
      close: () => {},
      pause: () => {},
      resume: () => {},
    }
    return new Promise<typeof opened>((resolve, reject) => {
      const request = http.get(
        {
          host: '127.0.0.1',
          port,
          path,
          agent: false,
          headers: { authorization: `Bearer ${it.root}`, accept: 'text/event-stream', ...headers },
        },
        (response) => {
          Object.assign(opened, {
            status: response.statusCode,
            headers: response.headers,
            close: () => request.destroy(),
            pause: () => response.pause(),
            resume: () => response.resume(),
          })
          response.on('data', (chunk) => {
            opened.text += chunk
          })
          response.on('end', () => {
            opened.ended = true
          })
          response.on('error', () => {})
          resolve(opened)
        },
      )
      request.on('error', reject)
    })
  }
  return {
    ...it,
    edge: it,
    world,
    server,
    port,
    call,
    stream,
    on,
    views,
    commands,
    questions,
    forgotten,
    counted,
    logs,
    listeners,
    previewed,
    publish(placed: PlacedEntry) {
      const { project, kind, id } = placed.entry
      for (const key of [
        `${project} ${kind} ${id}`,
        ...((feedKinds as readonly string[]).includes(kind) ? [`${project} moved`] : []),
      ])
        for (const heard of listeners.get(key) ?? []) heard(placed)
    },
    sent: (name: string) => commands.filter((command) => command.name === name),
  }
}
export type TestGateway = Awaited<ReturnType<typeof gateway>>
export const home = PRJ
/**
 * Polls until the condition holds, because real sockets take time.
 * @throws {Error} after about 2 s.
 */
export async function until(holds: () => boolean, what = 'it'): Promise<void> {
  for (let i = 0; i < 400; i++) {
    if (holds()) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`${what} did not happen`)
}
