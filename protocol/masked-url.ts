/**
 * URLs whose query may hold a credential. The gateway that receives a URL seals the value of every
 * query parameter; only the process that sends a request to the URL unseals it. Records, events and
 * answers contain the URL with `***` in place of each value.
 *
 * Invariants: the n-th masked parameter of a URL belongs to the n-th part that is stored with it; a
 * value is never reused for an address other than the one it was sent with, so that a caller who
 * cannot read a value cannot redirect it.
 */

/** The text that replaces the value of a query parameter. */
const MASK = '***'
/** The description that API documents give of a URL whose query is sealed. */
export const MASKED =
  `Values of its query are sealed, and answered as ${MASK}; ` +
  `${MASK} in a request keeps the value for the same address`
/** The maximum number of query parameters in one URL. */
const MAX_PARAMETERS = 32

/** The stored value of one query parameter. Equal digests mean equal values. */
export interface SealedPart {
  readonly sealed: string
  readonly digest: string
}
/**
 * The sealed values that a gateway adds to a URL in a command, in their order. Null: the caller
 * sent the mask.
 */
export type SentParts = readonly (SealedPart | null)[]
/**
 * A masked URL with its values. `parts` is absent when a release stored the URL before values were
 * sealed: the text is then the complete URL.
 */
export interface KeptUrl {
  readonly url: string
  readonly parts?: readonly SealedPart[]
}

/**
 * The member that a gateway adds to a command whose body has a URL. A gateway of an older release
 * omits it and sends the URL in clear.
 */
export interface SentUrl {
  readonly url_parts?: SentParts
}
/** The values of a record's URL, as in a new record and in the state of its owner. */
export interface UrlParts {
  readonly url_parts?: readonly SealedPart[]
}
/**
 * The values of a record's URL after a change. Null: the URL has no values any more. Absent: the
 * values stay as they are.
 */
export interface ChangedUrlParts {
  readonly url_parts?: readonly SealedPart[] | null
}

/** The address without its query, and the parameters as written. */
function split(url: string): { readonly address: string; readonly parameters: readonly string[] } {
  const at = url.indexOf('?')
  return at < 0
    ? { address: url, parameters: [] }
    : { address: url.slice(0, at), parameters: url.slice(at + 1).split('&') }
}
/**
 * Splits a parameter into its name with `=`, if it has one, and its value. A parameter without a
 * name is a value.
 */
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

/** Replaces every value of the URL's query with `***`. A masked URL stays as it is. */
export const maskUrl = (url: string): string => replaced(url, () => MASK)

/** The record as clients receive it. Releases that did not seal values stored its URL in clear. */
export function withMaskedUrl<F extends string, T extends { readonly [_ in F]?: string }>(
  record: T,
  field: F,
): T {
  const url = record[field]
  return url === undefined ? record : { ...record, [field]: maskUrl(url) }
}

/**
 * The masked URL and the values that the mask hides, in their order. Null: the value already is the
 * mask.
 */
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

/** The fault of a URL that has too many query parameters, or undefined. */
export const queryFault = (url: string): string | undefined =>
  split(url).parameters.length > MAX_PARAMETERS
    ? `must have at most ${MAX_PARAMETERS} query parameters`
    : undefined

/**
 * The URL to store after a caller sent one: each new value as it was sealed, and for each mask the
 * value stored before.
 * @param sent undefined when a gateway of an older release sent the URL in clear.
 * @param before the URL that is stored now.
 * @returns the URL with its values, or the fault when a mask has no stored value.
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
  // Stored by an earlier release: values that were not sealed can be retained only as a whole.
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
/** The names of the parameters that have a value, each preceded by its occurrence number. */
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

/** Combines a URL with the values stored next to it. */
export const keptUrl = (url: string, { url_parts }: UrlParts): KeptUrl => ({
  url,
  ...(url_parts && { parts: url_parts }),
})

/** Whether two URLs have the same values. */
export const sameParts = (a: KeptUrl | undefined, b: KeptUrl): boolean =>
  a?.parts?.length === b.parts?.length &&
  (b.parts ?? []).every(({ digest }, index) => digest === a?.parts?.[index]?.digest)

/**
 * The URL with its values unsealed for a request, or undefined when a value cannot be unsealed.
 * @param open unseals one value.
 */
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
