/**
 * Splits large requests, which a NATS server might reject, and joins their parts at the receiver.
 * The parts are sent in order on the subject of the request, and only the last part has the reply
 * subject. Answers are not split, because they are always below the limit.
 *
 * Invariants:
 * P1. A request reaches its handler whole or not at all. The requester repeats a request that is
 *     not answered, like any lost request.
 * P2. The memory for incomplete requests is bounded. When there are too many of them, the oldest is
 *     dropped.
 */
import { headers, type Msg, type MsgHdrs } from '@nats-io/transport-node'

/** Header of a part: id of the request, index of the part, number of parts. */
const PART = 'Baton-Part'
/**
 * Size in bytes above which a request is split. Smaller requests are sent whole, because nodes of
 * older releases cannot join parts. `max_payload` in `nats.conf` is 8 MiB.
 */
const MAX_WHOLE_BYTES = 5 * 1_048_576
/**
 * Maximum size of a part in bytes. A part and its headers are below the default message limit of a
 * NATS server (1 MiB).
 */
const PART_BYTES = 1_000_000
/** Maximum number of incomplete requests of one subscription. */
const MAX_INCOMPLETE = 8

/** A part of a request. `headers` is undefined for a request that is sent whole. */
export interface RequestPart {
  readonly data: Uint8Array
  readonly headers: MsgHdrs | undefined
}

/**
 * Returns the parts in which a request is sent, in order.
 * @param id unique id of the request.
 */
export function splitRequest(data: Uint8Array, id: () => string): readonly RequestPart[] {
  if (data.length <= MAX_WHOLE_BYTES) return [{ data, headers: undefined }]
  const count = Math.ceil(data.length / PART_BYTES)
  const name = id()
  return Array.from({ length: count }, (_, index) => {
    const made = headers()
    made.set(PART, `${name} ${index} ${count}`)
    return { data: data.subarray(index * PART_BYTES, (index + 1) * PART_BYTES), headers: made }
  })
}

/** Joins the parts of the requests that one subscription receives. */
export class RequestParts {
  readonly #incomplete = new Map<string, Uint8Array[]>()

  /**
   * Adds a part. Returns the content of the request when the last part arrives, and undefined
   * before that. A request with a lost part is dropped.
   */
  join({ headers: given, data }: Pick<Msg, 'headers' | 'data'>): Uint8Array | undefined {
    const part = given?.get(PART)
    if (!part) return data
    const [id = '', index, count] = part.split(' ')
    const parts = this.#incomplete.get(id) ?? []
    // Parts of one connection arrive in order, so an unexpected index means that an earlier part
    // was lost.
    if (parts.length !== Number(index)) {
      this.#incomplete.delete(id)
      return undefined
    }
    parts.push(data)
    if (parts.length === Number(count)) {
      this.#incomplete.delete(id)
      return Buffer.concat(parts)
    }
    this.#incomplete.set(id, parts)
    for (const oldest of this.#incomplete.keys()) {
      if (this.#incomplete.size <= MAX_INCOMPLETE) break
      this.#incomplete.delete(oldest)
    }
    return undefined
  }
}
