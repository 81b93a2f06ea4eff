/**
 * Follows Server-Sent Events streams with reconnection. The cursor is the last id received, so a
 * reconnect to any gateway neither loses nor repeats frames.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { type Api, api } from '../protocol/api.ts'
import type { ChannelEventRecord } from '../protocol/channels/schema.ts'
import type { LogFilters, RunLogLine, RunLogPage } from '../protocol/jobs/logs.ts'
import { type ProjectRunEvent, type RunEventRecord, terminal } from '../protocol/runs/schema.ts'
import type { Client } from './client.ts'
import { BatonError } from './errors.ts'
import { type ReconnectOptions, reconnecting } from './streams/reconnect.ts'
import { orAborted } from './watchdog.ts'

/**
 * A frame: its cursor (absent from previews), its type and its content. A frame `stream.reset` has
 * other content (`StreamReset`): the stream does not continue directly after the cursor, so a reader
 * should load the records again.
 */
export interface Frame<T> {
  readonly id?: number
  readonly type: string
  readonly data: T
}
export interface FollowOptions extends ReconnectOptions {
  /** Cursor to start after. */
  readonly after?: number
  /**
   * Called with the id of a frame that was already received. The frame is omitted. A correct server
   * never repeats a frame.
   */
  readonly onRepeat?: (id: number) => void
}
/** The content of a frame `stream.reset`. `requested` and `resumed_from` are cursors. */
export interface StreamReset {
  /**
   * `cursor_too_old`: events after the cursor are no longer stored. `cursor_too_new`: the journal
   * ends before the cursor, because it lost its end.
   */
  readonly reason: 'cursor_too_old' | 'cursor_too_new'
  readonly requested: number
  readonly resumed_from: number
}
/**
 * Determines whether a sequence ends at the cursor, so that no frame will follow. Called when the
 * server has ended a stream.
 */
type Over = (cursor: number) => Promise<boolean>

/**
 * Follows the timeline of a run, from the beginning or after a cursor, until the run ends or
 * `signal` aborts. Continues if a failed run is retried in the meantime.
 * @throws BatonError if the service refuses the request (with a 4xx status other than 429), or if
 * the response is not from a Baton service.
 */
export async function* followRun(
  client: Client,
  runId: string,
  options: FollowOptions = {},
): AsyncGenerator<Frame<RunEventRecord>> {
  // The run may belong to another project than that of the client, so its record is requested only
  // if the events do not show whether it has ended.
  let ended = false
  const over: Over = async (cursor) => {
    if (!ended && !terminal.has((await client.run.get({ id: runId })).status)) return false
    return (await page(client, runId, cursor, 1)).items.length === 0
  }
  const input = { id: runId }
  const frames = follow<RunEventRecord>(
    client,
    'run.events',
    input,
    'after_sequence',
    options,
    over,
  )
  for await (const frame of frames) {
    if (frame.type === 'run.resumed' || frame.type === 'stream.reset') ended = false
    else ended ||= ENDS.has(frame.type)
    yield frame
  }
}
/** The types of the events that end a run. */
const ENDS: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.cancelled'])
/**
 * Follows all runs of a project, after a cursor or from now on, until `signal` aborts.
 * @throws BatonError if the service refuses the request (with a 4xx status other than 429), or if
 * the response is not from a Baton service.
 */
export const followProject = (
  client: Client,
  options: FollowOptions = {},
): AsyncGenerator<Frame<ProjectRunEvent>> =>
  follow(client, 'run.feed', {}, 'since', options, () => Promise.resolve(false))
/**
 * Follows the events of a channel, after a cursor or from now on, until the channel is deleted or
 * no longer visible, or `signal` aborts.
 * @throws BatonError if the service refuses the request (with a 4xx status other than 429), or if
 * the response is not from a Baton service.
 */
export async function* followChannel(
  client: Client,
  channelId: string,
  options: FollowOptions = {},
): AsyncGenerator<Frame<ChannelEventRecord>> {
  const over: Over = () =>
    client.channel.get({ id: channelId }).then(
      () => false,
      (error: unknown) => {
        if (error instanceof BatonError && error.status === 404) return true
        throw error
      },
    )
  yield* follow<ChannelEventRecord>(
    client,
    'channel.events',
    { id: channelId },
    'since',
    options,
    over,
  )
}

/**
 * Follows the log lines of a run that match the filters, from the beginning or after a position,
 * until the run ends or `signal` aborts.
 * @throws BatonError if the service refuses the request (with a 4xx status other than 429), or if
 * the response is not from a Baton service.
 */
export async function* followLogs(
  client: Client,
  runId: string,
  filters: LogFilters = {},
  options: FollowOptions = {},
): AsyncGenerator<Frame<RunLogLine>> {
  const input = { id: runId, ...filters }
  const over: Over = async (after) => {
    if (!terminal.has((await client.run.get({ id: runId })).status)) return false
    const page = await client.transport.call(api['run.logs'], { ...input, after, limit: 1 })
    const { items, has_more } = page as RunLogPage
    return items.length === 0 && !has_more
  }
  yield* follow<RunLogLine>(client, 'run.logs', input, 'after', options, over)
}

/**
 * Reads the current timeline of a run, page by page.
 * @param after the sequence after which the result begins; 0 reads the whole timeline.
 * @throws BatonError if the service refuses a request or does not respond.
 */
export async function timeline(
  client: Client,
  runId: string,
  after = 0,
): Promise<RunEventRecord[]> {
  const items: RunEventRecord[] = []
  for (let more = true; more; ) {
    const { items: next, has_more } = await page(
      client,
      runId,
      items.at(-1)?.sequence ?? after,
      PAGE,
    )
    items.push(...next)
    more = has_more
  }
  return items
}
/** Number of events that one request fetches. */
const PAGE = 100
const page = async (client: Client, id: string, after_sequence: number, limit: number) =>
  (await client.transport.call(api['run.events'], { id, after_sequence, limit })) as {
    items: RunEventRecord[]
    has_more: boolean
  }

async function* follow<T>(
  { transport }: Client,
  name: keyof Api,
  input: Record<string, unknown>,
  parameter: string,
  options: FollowOptions,
  over: Over,
): AsyncGenerator<Frame<T>> {
  const { signal, onRepeat } = options
  const { path, rest } = transport.path(api[name], input)
  let cursor = options.after
  const begins = (after: number): void => {
    cursor ??= after
  }
  yield* reconnecting<Frame<T>>(
    transport,
    {
      request: (signal) => ({
        path: path + queryOf({ ...rest, [parameter]: cursor }),
        init: { headers: { ...transport.headers, accept: 'text/event-stream' }, signal },
      }),
      async *read(body, { alive, received }) {
        for await (const { id, event = 'message', data } of parsed(body, alive, begins)) {
          received()
          const place = id === undefined || id === '' ? undefined : Number(id)
          const content: unknown = JSON.parse(data)
          // Frames after a reset may have cursors that were received before.
          if (event === 'stream.reset') cursor = (content as StreamReset).resumed_from - 1
          else if (place !== undefined && cursor !== undefined && place <= cursor) {
            onRepeat?.(place)
            continue
          } else cursor = place ?? cursor
          yield { ...(place !== undefined && { id: place }), type: event, data: content as T }
        }
        const isOver = over(cursor ?? 0)
        return await (signal ? orAborted(isOver, signal) : isOver)
      },
    },
    options,
  )
}

/** Returns the query string of a request, beginning with `?`; empty if no parameter has a value. */
function queryOf(parameters: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(parameters).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/**
 * Matches the comment with the initial cursor of a stream. The server sends it if the request
 * contains no cursor.
 */
const BEGINS = /^\s*begins after (\d+)$/
/**
 * Parses a body into messages. The body is cancelled when the iteration stops.
 * @param alive called when data arrives.
 * @param begins called with the initial cursor if the stream contains one.
 */
const parsed = (
  body: NonNullable<Response['body']>,
  alive: () => void,
  begins: (after: number) => void,
): AsyncIterable<{ id?: string; event?: string; data: string }> => {
  const seen = new TransformStream<string, string>({
    transform: (text, out) => {
      alive()
      out.enqueue(text)
    },
  })
  return body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(seen)
    .pipeThrough(
      new EventSourceParserStream({
        onComment: (comment) => {
          const [, after] = BEGINS.exec(comment) ?? []
          if (after !== undefined) begins(Number(after))
        },
      }),
    ) as unknown as AsyncIterable<{
    id?: string
    event?: string
    data: string
  }>
}
