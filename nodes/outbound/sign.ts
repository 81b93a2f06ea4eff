/**
 * The signature scheme of HTTP actions, webhooks and callbacks of interactions. The signed text is
 * `v1`, the delivery id, the time in Unix seconds and the raw body, joined by dots. The key is the
 * 32 bytes encoded in the receiver's secret. Receivers should reject a time that differs from
 * theirs by more than 300 s, so each attempt is signed separately.
 */
import { createHmac } from 'node:crypto'

interface Signing {
  /** Product name in the names of the headers, as in `X-<brand>-Signature`. */
  readonly brand: string
  readonly key: Uint8Array
  /** Identifies the delivery; the same for all attempts. */
  readonly delivery_id: string
  /** The time of the attempt in Unix milliseconds. */
  readonly at: number
  readonly body: string
  readonly secret_ref: string
  readonly secret_version: number
}

/** Returns the headers of a signed delivery. */
export function signedHeaders({
  brand,
  key,
  delivery_id,
  at,
  body,
  secret_ref,
  secret_version,
}: Signing): Record<string, string> {
  const time = String(Math.floor(at / 1000))
  const digest = createHmac('sha256', key).update(`v1.${delivery_id}.${time}.`).update(body)
  return {
    [`X-${brand}-Signature-Version`]: 'v1',
    [`X-${brand}-Signature`]: `sha256=${digest.digest('hex')}`,
    [`X-${brand}-Timestamp`]: time,
    [`X-${brand}-Delivery-Id`]: delivery_id,
    [`X-${brand}-Secret-Ref`]: secret_ref,
    [`X-${brand}-Secret-Version`]: String(secret_version),
    'Idempotency-Key': delivery_id,
  }
}
