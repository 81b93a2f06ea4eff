/**
 * URLs whose query may hold a credential. The value of every query parameter is sealed by the gateway that receives it; only
 * the process that sends a request opens it. Records, events and answers have the URL with `***` in place of each value.
 *
 * Invariants: the n-th masked parameter of a URL belongs to the n-th part that is kept with it; a value is never kept for
 * another address than the one it was sent with, so that nobody who cannot read a value can have it sent elsewhere.
 */

/** What stands for the value of a query parameter. */
const MASK = '***'
/** What documents say of a URL whose query is sealed. */
export const MASKED = `Values of its query are sealed, and answered as ${MASK}; ${MASK} in a request keeps the value for the same address`
/** Query parameters of one URL at most. */
const MAX_PARAMETERS = 32

/** The value of one query parameter as it is kept. Equal digests mean equal values. */
export interface SealedPart {
  readonly sealed: string
  readonly digest: string
}
/** What a gateway adds to a URL in a command: its values in their order. Null: the caller sent the mask. */
export type SentParts = readonly (SealedPart | null)[]
/** A masked URL with its values. `parts` is absent when a release stored the URL before values were sealed: its text is the URL itself. */
export interface KeptUrl {
  readonly url: string
  readonly parts?: readonly SealedPart[]
}

/** What a gateway adds to a command whose body has a URL. Absent from a gateway of an older release, which sends the URL in clear. */
export interface SentUrl {
  readonly url_parts?: SentParts
}
/** Values of the URL of a record, as a new record and its owner's state have them. */
export interface UrlParts {
  readonly url_parts?: readonly SealedPart[]
}
/** Values of the URL of a record after a change. Null: it has none any more. Absent: they stay. */
export interface ChangedUrlParts {
  readonly url_parts?: readonly SealedPart[] | null
}

/** The address without its query, and the parameters as they are written. */
function split(url: string): { readonly address: string; readonly parameters: readonly string[] } {
  const at = url.indexOf('?')
  return at < 0
    ? { address: url, parameters: [] }
    : { address: url.slice(0, at), parameters: url.slice(at + 1).split('&') }
}
/** A parameter as its name with `=`, if it has one, and its value. A parameter without a name is a value. */
function parameterOf(text: string): { readonly name: string; readonly value: string } {
  const at = text.indexOf('=')
  return at < 0
    ? { name: '', value: text }
    : { name: text.slice(0, at + 1), value: text.slice(at + 1) }
}
const replaced = (url: string, change: (value: string, name: string) => string): string => {
  const { address, parameters } = split(url)
  if (parameters.length === 0) return url
  const texts = parameters.map((text) => {
    const { name, value } = parameterOf(text)
    return value === '' ? text : name + change(value, name)
  })
  return `${address}?${texts.join('&')}`
}

/** The URL with `***` for every value of its query. A masked URL stays as it is. */
export const maskUrl = (url: string): string => replaced(url, () => MASK)

/** A record as it is answered: releases that sealed no values stored its URL in clear. */
export function withMaskedUrl<F extends string, T extends { readonly [_ in F]?: string }>(
  record: T,
  field: F,
): T {
  const url = record[field]
  return url === undefined ? record : { ...record, [field]: maskUrl(url) }
}

/** A URL and the values that its mask hides, in their order. Null: the value is the mask already. */
export function partUrl(url: string): {
  readonly url: string
  readonly values: readonly (string | null)[]
} {
  const values: (string | null)[] = []
  const masked = replaced(url, (value) => {
    values.push(value === MASK ? null : value)
    return MASK
  })
  return { url: masked, values }
}

/** Why a URL has too many query parameters, or undefined. */
export const queryFault = (url: string): string | undefined =>
  split(url).parameters.length > MAX_PARAMETERS
    ? `must have at most ${MAX_PARAMETERS} query parameters`
    : undefined

/**
 * What is kept of a URL that was sent: new values as they were sealed, and for each mask the value that is there.
 * @param sent undefined when a gateway of an older release sent the URL in clear.
 * @param before the URL that is kept now.
 * @returns the URL with its values, or why a mask stands for nothing.
 */
export function keepUrl(
  url: string,
  sent: SentParts | undefined,
  before: KeptUrl | undefined,
): KeptUrl | { readonly fault: string } {
  if (!sent || sent.length === 0) return { url }
  if (!sent.includes(null)) return { url, parts: sent as readonly SealedPart[] }
  if (!before || split(before.url).address !== split(url).address)
    return { fault: `has a masked query parameter (${MASK}); send its value for a new address` }
  // Stored by an earlier release: values that were not sealed are kept only as a whole.
  if (!before.parts && sent.every((part) => part === null) && maskUrl(before.url) === url)
    return before
  const known = new Map(namesOf(before.url).map((name, index) => [name, before.parts?.[index]]))
  const parts: SealedPart[] = []
  for (const [index, name] of namesOf(url).entries()) {
    const part = sent[index] ?? known.get(name)
    if (!part) return { fault: `has a masked query parameter (${MASK}) with no value; send it` }
    parts.push(part)
  }
  return { url, parts }
}
/** Names of the parameters that have a value, each with the number of its occurrence. */
function namesOf(url: string): string[] {
  const times = new Map<string, number>()
  const names: string[] = []
  replaced(url, (value, name) => {
    const time = (times.get(name) ?? 0) + 1
    times.set(name, time)
    names.push(`${time} ${name}`)
    return value
  })
  return names
}

/** A URL with the values that are kept beside it. */
export const keptUrl = (url: string, { url_parts }: UrlParts): KeptUrl => ({
  url,
  ...(url_parts && { parts: url_parts }),
})

/** Whether two URLs have the same values. */
export const sameParts = (a: KeptUrl | undefined, b: KeptUrl): boolean =>
  a?.parts?.length === b.parts?.length &&
  (b.parts ?? []).every(({ digest }, index) => digest === a?.parts?.[index]?.digest)

/** The URL as a request needs it, or undefined when a value cannot be opened. @param open unseals one value. */
export function openUrl(
  { url, parts }: KeptUrl,
  open: (sealed: string) => string | undefined,
): string | undefined {
  let next = 0
  let whole = true
  const opened = replaced(url, (value) => {
    // Stored by an earlier release: the text is the value.
    if (!parts && value !== MASK) return value
    const part = parts?.[next++]
    const text = part && open(part.sealed)
    if (text === undefined) whole = false
    return text ?? ''
  })
  return whole ? opened : undefined
}
