/**
 * Following a stream: Server-Sent Events with reconnection. The last id seen is the cursor, so nothing is missed and
 * nothing comes twice, whichever gateway answers next.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { api, type Api } from '../protocol/api.ts'
import type { ProjectRunEvent, RunEventRecord } from '../protocol/api/runs.ts'
import { refusal, type Client } from './client.ts'

/** A frame: its cursor (absent on previews), its type and its content. */
export interface Frame<T> {
  readonly id?: number
  readonly type: string
  readonly data: T
}
export interface FollowOptions {
  /** Cursor to start after. */
  readonly after?: number
  readonly signal?: AbortSignal
  /** Told of every interruption before the next try. */
  readonly onReconnect?: (reason: string) => void
}
const ENDS = new Set(['run.completed', 'run.failed', 'run.cancelled'])

/** The timeline of a run, from the beginning or after a cursor, until the run ends. */
export async function* followRun(client: Client, runId: string, options: FollowOptions = {}): AsyncGenerator<Frame<RunEventRecord>> {
  for await (const frame of follow<RunEventRecord>(client, 'run.events', { id: runId }, 'after_sequence', options)) {
    yield frame
    if (ENDS.has(frame.type)) return
  }
}
/** Every run of a project, after a cursor or from now on, without end. */
export const followProject = (client: Client, options: FollowOptions = {}): AsyncGenerator<Frame<ProjectRunEvent>> => follow(client, 'run.feed', {}, 'since', options)

async function* follow<T>(client: Client, name: keyof Api, slots: Record<string, unknown>, parameter: string, options: FollowOptions): AsyncGenerator<Frame<T>> {
  const { transport } = client
  let cursor = options.after
  for (let failures = 0; !options.signal?.aborted; ) {
    let reason = 'the stream ended'
    try {
      const { path } = transport.path(api[name], slots)
      const answer = await transport.fetch(`${transport.url}${path}${cursor === undefined ? '' : `?${parameter}=${cursor}`}`, {
        headers: { ...transport.headers, accept: 'text/event-stream' }, ...(options.signal && { signal: options.signal }),
      })
      if (!answer.ok) {
        const error = refusal(answer, await answer.text())
        if (answer.status < 500 && answer.status !== 429) throw error
        reason = error.message
      } else if (answer.body) {
        const frames = answer.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
        for await (const { id, event, data } of frames as unknown as AsyncIterable<{ id?: string; event?: string; data: string }>) {
          failures = 0
          const place = id === undefined || id === '' ? undefined : Number(id)
          if (place !== undefined) cursor = place
          yield { ...(place !== undefined && { id: place }), type: event ?? 'message', data: JSON.parse(data) as T }
        }
      }
    } catch (error) {
      if (options.signal?.aborted) return
      if (error instanceof Error && error.name === 'BatonError') throw error
      reason = (error as Error).message
      transport.next()
    }
    options.onReconnect?.(reason)
    await new Promise((done) => setTimeout(done, Math.min(2000, 50 * 2 ** failures++)))
  }
}
