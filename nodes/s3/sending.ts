/**
 * Sends commands to S3 with a limit on the time in which the store makes no progress. The limits of
 * the SDK do not suffice: `requestTimeout` includes the time in which the body is sent, so it would
 * end large parts on slow links, `socketTimeout` would end the downloads of slow clients, and both
 * apply to each attempt separately.
 *
 * Invariants:
 * P1. A command ends at the latest `silence` milliseconds after its last progress, including all
 *     attempts. Progress is a slice of the body that the connection has accepted, and the headers
 *     of a response.
 * P2. After a command has ended, it occupies no connection.
 */
import { Readable } from 'node:stream'
import {
  type $Command,
  CompleteMultipartUploadCommand,
  type S3Client,
  type S3ClientResolvedConfig,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from '@aws-sdk/client-s3'

/** Maximum time in milliseconds without progress. */
export interface Timeouts {
  /** For all commands except those with another limit here. */
  readonly silence: number
  /** For the completion of a multipart upload, which the store may check for a long time. */
  readonly completion: number
}
/** Below `BATON_DEADLINE`, so that requests are answered in time. */
export const TIMEOUTS_MS: Timeouts = { silence: 10_000, completion: 30_000 }

/** Thrown when the store does not answer in time. */
export class SilentStore extends Error {
  override readonly name = 'SilentStore'
  constructor(ms: number) {
    super(`the store did not answer within ${ms / 1000} s`)
  }
}

/** Size in bytes of the slices in which a body is sent. */
const SLICE_BYTES = 65_536
function* slices(bytes: Uint8Array, progress: () => void): Generator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    progress()
    yield bytes.subarray(at, at + SLICE_BYTES)
  }
}

/** Sends a command, and ends it when `stop` is aborted. */
export type Send = <In extends ServiceInputTypes, Out extends ServiceOutputTypes>(
  command: $Command<In, Out, S3ClientResolvedConfig>,
  stop?: AbortSignal,
) => Promise<Out>

/**
 * Returns a function that sends commands within these time limits.
 * @param closed ends all commands when it is aborted.
 */
export function createSend(client: S3Client, timeouts: Timeouts, closed: AbortSignal): Send {
  return async (command, stop) => {
    const limit =
      command instanceof CompleteMultipartUploadCommand ? timeouts.completion : timeouts.silence
    const end = new AbortController()
    const signals = stop ? [closed, stop] : [closed]
    for (const signal of signals) if (signal.aborted) throw signal.reason
    let cancel = () => {}
    const ended = new Promise<never>((_, reject) => {
      const fail = (error: unknown) => {
        reject(error)
        end.abort(error)
      }
      const timer = setTimeout(() => fail(new SilentStore(limit)), limit)
      const stopped = ({ target }: Event) => fail((target as AbortSignal).reason)
      for (const signal of signals) signal.addEventListener('abort', stopped)
      cancel = () => {
        clearTimeout(timer)
        for (const signal of signals) signal.removeEventListener('abort', stopped)
      }
      const progress = () => void timer.refresh()
      command.middlewareStack.add(
        (next) => async (args) => {
          // The original request keeps its body, because another attempt sends it again.
          const request = args.request as { readonly body?: unknown }
          const sent = await next(
            request.body instanceof Uint8Array && request.body.length > 0
              ? {
                  ...args,
                  request: Object.assign(Object.create(request), {
                    body: Readable.from(slices(request.body, progress), { highWaterMark: 1 }),
                  }),
                }
              : args,
          )
          progress()
          return sent
        },
        { step: 'deserialize', priority: 'low' },
      )
    })
    try {
      return await Promise.race([client.send(command, { abortSignal: end.signal }), ended])
    } finally {
      cancel()
    }
  }
}

/** The body of a response. */
export type Body = AsyncIterable<Uint8Array> & { destroy(error?: Error): void }
/**
 * Yields the bytes of a response.
 * @throws SilentStore when the store sends nothing for `limit` milliseconds while the caller waits.
 */
export async function* responseBytes(body: Body, limit: number): AsyncGenerator<Uint8Array, void> {
  const chunks = body[Symbol.asyncIterator]()
  try {
    for (;;) {
      const timer = setTimeout(() => body.destroy(new SilentStore(limit)), limit)
      const next = await chunks.next().finally(() => clearTimeout(timer))
      if (next.done) return
      yield next.value
    }
  } finally {
    body.destroy()
  }
}
