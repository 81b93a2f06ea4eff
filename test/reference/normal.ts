/**
 * Makes recorded responses reproducible: values that differ between recordings are replaced by
 * fixed values.
 */

import { createHash } from 'node:crypto'
import { makeId } from '../../protocol/ids.ts'

const TIME = '2026-01-05T09:00:00.000Z'
/**
 * The signing secret in examples: 32 bytes in base64, the form of all signing secrets. It also
 * replaces other secrets.
 */
const SECRET = Buffer.from('example signing secret, 32 bytes').toString('base64')
const DIGEST = '0123456789abcdef'.repeat(4)
/**
 * Fields with journal cursors or measured times. They are integers that differ between recordings.
 */
const MOVING = /^(sequence|seq|after|next_sequence|last_seq|through_seq|duration_ms|latency_ms)$/
/** For each field with an arbitrary value, the value that replaces it. */
const STANDING: Readonly<Record<string, string>> = {
  next_cursor: 'example-cursor',
  resume_cursor: 'example-cursor',
  key_prefix: 'bat_exam',
  request_id: 'req_example',
  user_code: 'BCDF-GHJK',
  device_code: 'example-device-code',
  verification_uri_complete: 'http://localhost:8080/device?user_code=BCDF-GHJK',
}
/** Names to which the recording appends a number. */
const NUMBERED = new RegExp(
  '^(agent|bot|desk|file|Flow|key|laptop|Loop|made|Made|made shared|made\\.shared|person|Question|' +
    'role|token|word)[ -]\\d+$',
  'g',
)
/** The maximum length of arrays in an example. */
const MAX_ITEMS = 2

type Open = Readonly<Record<string, unknown>>

/**
 * Returns a function that replaces the changing values of one example. Equal ids remain equal in
 * all parts of the example.
 */
export function normalizer(): <T>(value: T) => T {
  const ids = new Map<string, string>()
  const counts = new Map<string, number>()
  const idOf = (id: string, prefix: string): string => {
    const known = ids.get(id)
    if (known !== undefined) return known
    const count = (counts.get(prefix) ?? 0) + 1
    counts.set(prefix, count)
    const bytes = createHash('sha256').update(`${prefix} ${count}`).digest()
    // Ids of all kinds have the same form after the prefix, so the prefix of a run id is replaced.
    const made = `${prefix}_${makeId('run', Date.parse(TIME) + count, bytes).slice(4)}`
    ids.set(id, made)
    return made
  }
  const text = (value: string): string =>
    value
      .replaceAll(/\b([a-z]+(?:_[a-z]+)*)_[0-9A-Z]{26}\b/g, idOf)
      .replaceAll(/:evt:\d+/g, ':evt:12000')
      .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:]+(?:\.\d+)?Z/g, TIME)
      .replaceAll(/\b\d{4}-\d\d-\d\d\b(?!T)/g, TIME.slice(0, 10))
      .replaceAll(/https?:\/\/127\.0\.0\.1:\d+/g, 'http://localhost:8080')
      .replaceAll(/\/answer\/[\w.~-]+/g, '/answer/example')
      .replaceAll(/#code=[\w-]+/g, '#code=example')
      .replaceAll(/\b127\.0\.0\.1\b/g, '192.0.2.1')
      .replaceAll(/\borders[ -]\d+/g, 'orders')
      .replaceAll(NUMBERED, '$1')
      .replaceAll(/^[A-Za-z0-9+/]{43}=$/g, SECRET)
      .replaceAll(/\b(batc?)_[A-Za-z0-9_-]{20,}/g, '$1_example')
      .replaceAll(/(^|[^\w/])(?![0-9a-f]{64}\b)[A-Za-z0-9_-]{44,}/g, '$1example')
      .replaceAll(/\b[0-9a-f]{64}\b/g, DIGEST)
      .replaceAll(/(begins after )\d+/g, '$112000')
      .replaceAll(/^(id: )\d+$/gm, '$112000')
      .replaceAll(/"sequence":\d{4,}/g, '"sequence":12000')
  const visit = (value: unknown, name = ''): unknown => {
    if (typeof value === 'string') return STANDING[name] ?? text(value)
    if (typeof value === 'number') return MOVING.test(name) && value > 1000 ? 12_000 : value
    if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => visit(item, name))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value as Open).map(([key, member]) => [text(key), visit(member, key)]),
    )
  }
  return <T>(value: T) => visit(value) as T
}
