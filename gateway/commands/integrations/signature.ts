/**
 * Verifies that a webhook comes from its provider. Secrets and signatures are compared in constant
 * time.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { FieldError } from '../../../protocol/errors.ts'
import type { ProviderName } from '../../../protocol/events/integrations.ts'
import { getOwn } from '../../../protocol/lookup.ts'

/** The parts of a request that are verified. `header` expects a name in lower case. */
export interface Signed {
  readonly header: (name: string) => string | undefined
  /** The body as it was received, decoded from UTF-8. */
  readonly body: string
}
/** Entries of the provider's secret. */
type Entries = Readonly<Record<string, string>>

/** Maximum difference between the time of a signature and the current time, in seconds. */
const TOLERANCE_S = 300
/** Minimum length of a secret in characters, and of the key in a signing token in bytes. */
const MIN_SECRET_LENGTH = 8
/** The start of a signing token whose key follows in base64 (Standard Webhooks). */
const BASE64_PREFIX = 'whsec_'

const hmac = (key: string | Buffer, text: string): Buffer =>
  createHmac('sha256', key).update(text, 'utf8').digest()
const digest = (text: string): Buffer => createHash('sha256').update(text, 'utf8').digest()
const equal = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b)
/** Entries with which webhooks are verified. */
const ENTRIES = ['webhook_secret', 'signing_token'] as const

/** Returns the HMAC key of a signing token. */
const keyOf = (token: string): Buffer =>
  token.startsWith(BASE64_PREFIX)
    ? Buffer.from(token.slice(BASE64_PREFIX.length), 'base64')
    : Buffer.from(token)

/** Returns why a secret is too short to authenticate a request, or undefined if it is not. */
function shortness(name: (typeof ENTRIES)[number], secret: string): string | undefined {
  if (secret.length < MIN_SECRET_LENGTH) return `must have at least ${MIN_SECRET_LENGTH} characters`
  return name === 'signing_token' && keyOf(secret).length < MIN_SECRET_LENGTH
    ? `must have at least ${MIN_SECRET_LENGTH} bytes in base64 after ${BASE64_PREFIX}`
    : undefined
}

/** Returns the faults of the entries of an integration's secret: those that are too short. */
export const shortEntries = (entries: Entries): FieldError[] =>
  ENTRIES.flatMap((name) => {
    const secret = getOwn(entries, name)
    const message = secret === undefined ? undefined : shortness(name, secret)
    return message === undefined ? [] : [{ field: `entries.${name}`, message }]
  })

/** Returns a secret, or undefined when it is missing or too short to authenticate a request. */
const secretIn = (entries: Entries, name: (typeof ENTRIES)[number]): string | undefined => {
  const secret = getOwn(entries, name)
  return secret === undefined || shortness(name, secret) !== undefined ? undefined : secret
}

/**
 * Verifies `X-Hub-Signature-256`, the HMAC-SHA256 of the body in hex (docs.github.com, "Validating
 * webhook deliveries").
 */
function fromGitHub({ header, body }: Signed, entries: Entries): boolean {
  const secret = secretIn(entries, 'webhook_secret')
  const given = /^sha256=([0-9a-f]{64})$/i.exec(header('x-hub-signature-256') ?? '')?.[1]
  return (
    secret !== undefined &&
    given !== undefined &&
    equal(Buffer.from(given, 'hex'), hmac(secret, body))
  )
}

/**
 * Verifies a request from GitLab. If the project stores a signing token, `webhook-signature` must
 * contain the base64 HMAC-SHA256 of id, time and body (Standard Webhooks). The key is the token or,
 * for a token of the form `whsec_…`, the base64-decoded bytes after this prefix. Without a signing
 * token, `X-Gitlab-Token` must equal the stored secret.
 */
function fromGitLab({ header, body }: Signed, entries: Entries, now: number): boolean {
  const token = secretIn(entries, 'signing_token')
  if (token === undefined) {
    const secret = secretIn(entries, 'webhook_secret')
    const given = header('x-gitlab-token')
    return secret !== undefined && given !== undefined && equal(digest(given), digest(secret))
  }
  const id = header('webhook-id')
  const time = header('webhook-timestamp')
  if (id === undefined || time === undefined || !/^\d{1,12}$/.test(time)) return false
  if (Math.abs(now / 1000 - Number(time)) > TOLERANCE_S) return false
  const expected = hmac(keyOf(token), `${id}.${time}.${body}`)
  return (header('webhook-signature') ?? '')
    .split(' ')
    .some((part) => part.startsWith('v1,') && equal(Buffer.from(part.slice(3), 'base64'), expected))
}

/**
 * Returns whether a request comes from the provider.
 * @param now Unix milliseconds.
 */
export const isFrom = (
  provider: ProviderName,
  request: Signed,
  entries: Entries,
  now: number,
): boolean =>
  provider === 'github' ? fromGitHub(request, entries) : fromGitLab(request, entries, now)
