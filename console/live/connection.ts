/**
 * One request for the multiplexed stream, from start to end. It does not reconnect; `hub.ts`
 * decides when to open the next connection.
 */
import {
  readStream,
  STREAMS_PATH,
  type StreamMessage,
  streamRequest,
} from '../../client/streams/read.ts'
import { endedBySignal, watchdog } from '../../client/watchdog.ts'
import type { StreamSubscription } from '../../protocol/streams/rows.ts'
import type { LiveFault, LiveSubscription } from './live.ts'
import type { LiveCredential, LivePorts } from './messages.ts'

/**
 * How a connection ended. `refused` is the fault with which the service refused the request, and
 * `faults` contains the faults of individual subscriptions by index. `lost` means that another
 * attempt may succeed, after `pause` milliseconds if the service requested a pause.
 */
export type ConnectionEnd =
  | { readonly refused: LiveFault; readonly faults: ReadonlyMap<number, LiveFault> }
  | { readonly lost: true; readonly pause?: number }

/** Milliseconds without a byte after which a connection is abandoned: three keepalives. */
const SILENCE_MS = 45_000

export class Connection {
  /** The ids of the subscriptions that have neither been refused nor ended, in order. */
  readonly open: Set<string>
  /** The ids of the subscriptions for which nothing has been received yet. */
  readonly unsettled: Set<string>
  readonly #abort = new AbortController()

  constructor(ids: readonly string[]) {
    this.open = new Set(ids)
    this.unsettled = new Set(ids)
  }
  /** Ends the connection. */
  close(): void {
    this.#abort.abort()
  }
  get closed(): boolean {
    return this.#abort.signal.aborted
  }

  /**
   * Sends the request and passes on the received frames in batches.
   * @returns how the connection ended; undefined after `close`.
   */
  async run(
    { url, headers }: LiveCredential,
    { fetch }: Pick<LivePorts, 'fetch'>,
    subscriptions: readonly (LiveSubscription & { readonly id: string })[],
    on: { begun(): void; frames(frames: readonly StreamMessage[]): void },
  ): Promise<ConnectionEnd | undefined> {
    const watch = watchdog(SILENCE_MS, this.#abort.signal)
    let pause: number | undefined
    try {
      const request = streamRequest(
        subscriptions as readonly StreamSubscription[],
        headers,
        watch.signal,
      )
      const answer = await endedBySignal(fetch)(`${url}${STREAMS_PATH}`, request)
      if (this.closed) return undefined
      if (!answer.ok) {
        const fault = faultOf(answer.status, await answer.text())
        const after = Number(answer.headers.get('retry-after'))
        const temporary = answer.status >= 500 || answer.status === 429 || answer.status === 408
        return temporary
          ? { lost: true, ...(after > 0 && { pause: after * 1000 }) }
          : { refused: fault, faults: single(fault) }
      }
      on.begun()
      if (answer.body)
        for await (const frames of readStream(answer.body, watch.alive, (ms) => (pause = ms))) {
          if (this.closed) return undefined
          on.frames(frames)
        }
    } catch {
      // The network, the watchdog or `close` has ended the connection.
    } finally {
      watch.stop()
    }
    return this.closed ? undefined : { lost: true, ...(pause !== undefined && { pause }) }
  }
}

function faultOf(status: number, text: string): LiveFault {
  try {
    const { error } = JSON.parse(text) as { readonly error: LiveFault }
    if (typeof error.code === 'string') return error
  } catch {
    // The body is not in the service's error format, for example because a proxy has answered.
  }
  return { code: status === 401 ? 'unauthorized' : 'internal', message: `Status ${status}` }
}
/**
 * Returns the faults of individual subscriptions that the refusal of a request contains, by index.
 */
function single({ code, details }: LiveFault): ReadonlyMap<number, LiveFault> {
  const fields = (details?.['fields'] ?? []) as readonly { field: string; message: string }[]
  return new Map(
    fields.flatMap(({ field, message }) => {
      const [, index] = /^subscriptions\[(\d+)\]/.exec(field) ?? []
      return index === undefined
        ? []
        : [[Number(index), { code, message: `${field}: ${message}`, details: details ?? {} }]]
    }),
  )
}
