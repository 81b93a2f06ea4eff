/**
 * URLs whose query may contain a credential. The gateway that receives a URL seals the value of
 * every query parameter. Only the process that sends a request to the URL unseals the values.
 * Records, events and answers contain the URL with `***` in place of each value.
 *
 * Invariants:
 * - The n-th masked parameter of a URL belongs to the n-th part that is stored with the URL.
 * - A value is reused only for the address with which it was sent. A caller who cannot read a value
 *   therefore cannot redirect it to another server.
 */

const MASK = '***'
/** The description of masked URLs in API documents. */
export const MASKED =
  `Query values are encrypted and returned as ${MASK}; ` +
  `${MASK} in a request keeps the stored value of the same address`
/** Maximum number of query parameters of a URL. */
const MAX_PARAMETERS = 32

/**
 * The encrypted value of one query parameter, as stored. Two values are equal if their digests are
 * equal.
 */
export interface SealedPart {
  readonly sealed: string
  readonly digest: string
}
/**
 * The sealed values of the URL in a command, in the order of their parameters. A value is null if
 * the caller sent the mask instead.
 */
export type SentParts = readonly (SealedPart | null)[]
/**
 * A masked URL with its sealed values. When `parts` is absent, `url` is the complete URL: it has no
 * values, or an earlier release stored it without sealing them.
 */
export interface SealedUrl {
  readonly url: string
  readonly parts?: readonly SealedPart[]
}

/**
 * The field that a gateway adds to a command whose body has a URL. If the field is absent, the
 * command was sent by a gateway of an older release, with the URL in plain text.
 */
export interface SentUrl {
  readonly url_parts?: SentParts
}
/**
 * The sealed values of a record's URL, as the record's first event and the actor's state store
 * them.
 */
export interface UrlParts {
  readonly url_parts?: readonly SealedPart[]
}
/**
 * The sealed values of the URL of a record after a change. Null if the URL no longer has values;
 * absent if the values are unchanged.
 */
export interface ChangedUrlParts {
  readonly url_parts?: readonly SealedPart[] | null
}

/** Splits a URL into the address before the query, and the parameters of the query as written. */
function split(url: string): { readonly address: string; readonly parameters: readonly string[] } {
  const at = url.indexOf('?')
  return at < 0
    ? { address: url, parameters: [] }
    : { address: url.slice(0, at), parameters: url.slice(at + 1).split('&') }
}
/**
 * Splits a parameter into its name, including `=`, and its value. A parameter without `=` is only a
 * value.
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

/** Returns the URL with `***` in place of every value in its query. A masked URL is unchanged. */
export const maskUrl = (url: string): string => replaced(url, () => MASK)

/**
 * Returns the record as clients receive it: with its URL masked. The stored URL may be unmasked,
 * because earlier releases stored it in plain text.
 */
export function withMaskedUrl<F extends string, T extends { readonly [_ in F]?: string }>(
  record: T,
  field: F,
): T {
  const url = record[field]
  return url === undefined ? record : { ...record, [field]: maskUrl(url) }
}

/**
 * Returns the masked URL, and the values that the mask replaces, in the order of their parameters.
 * A value is null where the given URL contains the mask.
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

/** Returns the fault of a URL with too many query parameters, or undefined. */
export const queryFault = (url: string): string | undefined =>
  split(url).parameters.length > MAX_PARAMETERS
    ? `must have at most ${MAX_PARAMETERS} query parameters`
    : undefined

/**
 * Returns the URL to store when a caller has sent a new URL. New values are stored as the gateway
 * sealed them. If the caller sent a mask instead of a value, the stored value of the parameter with
 * the same name is used.
 * @param sent undefined when a gateway of an older release sent the URL in plain text.
 * @param before the URL that is stored now.
 * @returns the URL with its values, or a fault when a mask has no stored value for this address.
 */
export function resolveMasks(
  url: string,
  sent: SentParts | undefined,
  before: SealedUrl | undefined,
): SealedUrl | { readonly fault: string } {
  if (!sent || sent.length === 0) return { url }
  if (!sent.includes(null)) return { url, parts: sent as readonly SealedPart[] }
  if (!before || split(before.url).address !== split(url).address)
    return { fault: `has a masked query parameter (${MASK}); send its value for a new address` }
  // If an earlier release stored the URL with unsealed values, they are kept only if the caller
  // sent a mask for each of them.
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
/**
 * Returns the names of the parameters that have a value. Repeated names are distinguished by a
 * number: each name is preceded by the number of its occurrence.
 */
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
export const sealedUrlOf = (url: string, { url_parts }: UrlParts): SealedUrl => ({
  url,
  ...(url_parts && { parts: url_parts }),
})

/** Whether two URLs have the same values, in the same order. */
export const sameParts = (a: SealedUrl | undefined, b: SealedUrl): boolean =>
  a?.parts?.length === b.parts?.length &&
  (b.parts ?? []).every(({ digest }, index) => digest === a?.parts?.[index]?.digest)

/**
 * Returns the URL with unsealed values for a request, or undefined when a value cannot be unsealed.
 * @param open unseals one value.
 */
export function openUrl(
  { url, parts }: SealedUrl,
  open: (sealed: string) => string | undefined,
): string | undefined {
  let next = 0
  let whole = true
  const opened = replaced(url, (value) => {
    // This value is not sealed, because an earlier release stored it.
    if (!parts && value !== MASK) return value
    const part = parts?.[next++]
    const text = part && open(part.sealed)
    if (text === undefined) whole = false
    return text ?? ''
  })
  return whole ? opened : undefined
}
