/**
 * Lease tokens. A token is a secret that also contains the name of its queue. Frames such as
 * heartbeats and reports identify their job only by its id and token: the id determines the shard,
 * and the token determines the queue. The name in a token is only routing information. The queue
 * itself compares the whole token. A token contains only ASCII letters, digits, `_`, `-`, `=` and
 * `.`, so it is valid in an HTTP header.
 */
import { prefixes } from '../ids.ts'
import { token } from '../subjects.ts'

const SHAPE = new RegExp(`^${prefixes.lease}_[A-Za-z0-9]+\\.(=|(?:[A-Za-z0-9_-]|=[0-9a-f]{2})+)$`)

/**
 * Returns the token of a new lease.
 * @param secret unguessable letters and digits.
 */
export const leaseToken = (secret: string, queue: string): string =>
  `${prefixes.lease}_${secret}.${token(queue)}`

/** By default, a decoder removes a byte order mark at the beginning. It is part of the name. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Returns the name of the queue in a token, or undefined when the text is not a lease token. */
export function queueOfLease(text: string): string | undefined {
  const encoded = text.length > 2048 ? undefined : SHAPE.exec(text)?.[1]
  if (encoded === undefined || encoded === '=') return encoded && ''
  // A name without `=` is not encoded.
  if (!encoded.includes('=')) return encoded
  const bytes: number[] = []
  for (let i = 0; i < encoded.length; i++) {
    if (encoded[i] !== '=') bytes.push(encoded.charCodeAt(i))
    else {
      bytes.push(Number.parseInt(encoded.slice(i + 1, i + 3), 16))
      i += 2
    }
  }
  const queue = decoder.decode(new Uint8Array(bytes))
  return token(queue) === encoded ? queue : undefined
}
