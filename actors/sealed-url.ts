/**
 * Computes changes to records whose URL may have sealed values: the state to store, the entry of
 * the audit log, and the reply. The values arrive sealed and are not decrypted here.
 */

import { timestamp } from '../protocol/common.ts'
import { type Refusal, refuseFields } from '../protocol/errors.ts'
import {
  type ChangedUrlParts,
  maskUrl,
  resolveMasks,
  type SealedPart,
  type SealedUrl,
  type SentParts,
  sameParts,
  type UrlParts,
  withMaskedUrl,
} from '../protocol/masked-url.ts'
import { type Patch, patch } from '../protocol/patch.ts'
import { type Change, changeOf } from './configuration.ts'

type UrlChange<T> = Change<T> & ChangedUrlParts

/**
 * Returns the URL of a new record in its stored form. A masked value is refused, because there is
 * no earlier value for it.
 */
export function newUrl(
  field: string,
  url: string,
  sent: SentParts | undefined,
): SealedUrl | Refusal {
  const kept = resolveMasks(url, sent, undefined)
  return 'fault' in kept ? refuseFields({ field, message: kept.fault, actual: maskUrl(url) }) : kept
}
/** Returns the sealed values of a URL in the form in which events and states store them. */
export const partsOf = ({ parts }: Partial<SealedUrl>): UrlParts =>
  parts ? { url_parts: parts } : {}
/**
 * Returns the sealed values of a URL after an event, in the form in which the state stores them.
 * @param set the new values. Null removes them, and undefined leaves them unchanged.
 */
export const partsAfter = (
  before: readonly SealedPart[] | undefined,
  set: readonly SealedPart[] | null | undefined,
): UrlParts => {
  const parts = set === undefined ? before : set
  return parts ? { url_parts: parts } : {}
}

type WithUrl<F extends string> = { updated_at: string } & { [_ in F]?: string }

/**
 * Computes the change to a record as `changeOf` does, for a record whose `field` is a URL. The URL
 * counts as changed even if only its sealed values differ.
 */
export function changeWithUrl<F extends string, T extends WithUrl<F>>({
  field,
  record,
  storedParts,
  wish,
  sentParts,
  at,
}: {
  readonly field: F
  readonly record: T
  /** The sealed values of the stored URL. */
  readonly storedParts: readonly SealedPart[] | undefined
  /**
   * The requested values, with a masked URL. An undefined URL leaves the stored URL unchanged. An
   * empty URL is handled by `changeOf`.
   */
  readonly wish: { readonly [K in keyof T]?: T[K] | undefined }
  /** The sealed values that the request contains. */
  readonly sentParts: SentParts | undefined
  readonly at: number
}): UrlChange<T> | Refusal | undefined {
  const shown = withMaskedUrl(record, field)
  const change = changeOf<T>(shown, wish, at)
  const url = wish[field as keyof T] as string | undefined
  if (!url) return change
  const stored = record[field]
  const before = stored ? { url: stored, ...(storedParts && { parts: storedParts }) } : undefined
  const next = resolveMasks(url, sentParts, before)
  if ('fault' in next) return refuseFields({ field, message: next.fault, actual: maskUrl(url) })
  if (next === before || (next.url === stored && sameParts(before, next))) return change
  const set = { ...change?.patch, [field]: next.url, updated_at: timestamp(at) } as Patch<T>
  const [from, to] = [shown[field], maskUrl(next.url)]
  return {
    patch: set,
    changes: { ...change?.changes, [field]: { ...(from !== undefined && { from }), to } },
    next: withMaskedUrl(patch(record, set), field),
    url_parts: next.parts ?? null,
  }
}
