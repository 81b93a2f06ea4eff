/**
 * Page cursors: a position, sealed together with what the page was of. A cursor works only for the project, route and
 * filters it was made for; any other text, and any change of this one, is refused.
 */
import { timingSafeEqual } from 'node:crypto'
import { refuseFields, type Refusal } from '../../protocol/errors.ts'
import type { World } from '../ports.ts'

/** What a cursor belongs to. */
export interface Binding {
  /** Id of the project, or of the organization. */
  readonly project: string
  /** Name of the row. */
  readonly route: string
  /** The query; `cursor` and `limit` do not count, the next page may be larger. */
  readonly filters: Readonly<Record<string, unknown>>
}

const SEAL = 16

/** The same text for equal values, whatever the order of their members. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`)
    .join()}}`
}
function sealOf(
  world: Pick<World, 'seal'>,
  { project, route, filters }: Binding,
  position: string,
): Uint8Array {
  const { cursor: _, limit: __, ...meant } = filters
  return world.seal(`cursor\n${canonical([project, route, meant])}\n${position}`).subarray(0, SEAL)
}

/** The text of a cursor. @param position any JSON value: the sort key of the last item. */
export function sealCursor(
  world: Pick<World, 'seal'>,
  binding: Binding,
  position: unknown,
): string {
  const text = JSON.stringify(position)
  return Buffer.concat([sealOf(world, binding, text), Buffer.from(text)]).toString('base64url')
}

/** The position of a cursor made for the same binding, or the refusal of any other text. */
export function openCursor(
  world: Pick<World, 'seal'>,
  binding: Binding,
  cursor: string,
): { readonly position: unknown } | Refusal {
  const bytes = Buffer.from(cursor, 'base64url')
  const text = bytes.subarray(SEAL).toString()
  // Decoding base64 forgives foreign characters and spare bits: only the text that was given out is accepted.
  const ours =
    bytes.length > SEAL &&
    bytes.toString('base64url') === cursor &&
    timingSafeEqual(bytes.subarray(0, SEAL), sealOf(world, binding, text))
  return ours
    ? { position: JSON.parse(text) as unknown }
    : refuseFields({ field: 'cursor', message: 'is not a cursor of this list with these filters' })
}
