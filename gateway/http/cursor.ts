/**
 * Cursors of pages and frames: a position, sealed together with the list that it belongs to. A
 * cursor is valid only for the project, route and filters for which it was created. Any other text,
 * including a modified cursor, is refused. The position is authenticated but not encrypted.
 */
import { timingSafeEqual } from 'node:crypto'
import { isRefusal, type Refusal, refuseFields } from '../../protocol/errors.ts'
import type { World } from '../ports.ts'

/** The list that a cursor belongs to. */
export interface Binding {
  /** Id of the project, or of the organization. */
  readonly project: string
  /** Name of the list, usually the name of its API row. */
  readonly route: string
  /**
   * The query of the list. `cursor` and `limit` are excluded from the seal, so the next page may
   * have another size.
   */
  readonly filters: Readonly<Record<string, unknown>>
}

/** Size of the signature of a cursor in bytes. */
const SEAL_BYTES = 16

/** Returns JSON with sorted keys, so that equal values have the same text. */
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
  return world
    .seal(`cursor\n${canonical([project, route, meant])}\n${position}`)
    .subarray(0, SEAL_BYTES)
}

/**
 * Creates a cursor.
 * @param position any JSON value, such as the sort key of the last item.
 */
export function sealCursor(
  world: Pick<World, 'seal'>,
  binding: Binding,
  position: unknown,
): string {
  const text = JSON.stringify(position)
  return Buffer.concat([sealOf(world, binding, text), Buffer.from(text)]).toString('base64url')
}

/**
 * Returns the position in a cursor that was created for the same binding. Any other text is refused
 * with `bad_request`.
 */
export function openCursor(
  world: Pick<World, 'seal'>,
  binding: Binding,
  cursor: string,
): { readonly position: unknown } | Refusal {
  const bytes = Buffer.from(cursor, 'base64url')
  const text = bytes.subarray(SEAL_BYTES).toString()
  // Base64 decoding ignores invalid characters and unused bits. This check accepts only the text
  // that was issued.
  const ours =
    bytes.length > SEAL_BYTES &&
    bytes.toString('base64url') === cursor &&
    timingSafeEqual(bytes.subarray(0, SEAL_BYTES), sealOf(world, binding, text))
  return ours
    ? { position: JSON.parse(text) as unknown }
    : refuseFields({ field: 'cursor', message: 'is not a cursor of this list with these filters' })
}

/** The pagination members in the response of a list. */
interface Paging {
  readonly has_more: boolean
  readonly next_cursor?: string
}
/**
 * Reads a page of a list, from the position in a cursor or from the beginning, and seals the cursor
 * of the next page.
 * @param cursor the cursor in the request. Without one, the list is read from the beginning.
 * @param ask reads the page after a position. The `position` of the page is the position of its
 * last item, and is present only if more items follow.
 */
export async function sealedPage<P extends { readonly position?: unknown }>(
  world: Pick<World, 'seal'>,
  binding: Binding,
  cursor: unknown,
  ask: (after: { readonly after?: unknown }) => Promise<P | Refusal>,
): Promise<{ readonly page: P; readonly paging: Paging } | Refusal> {
  const opened = typeof cursor === 'string' ? openCursor(world, binding, cursor) : undefined
  if (opened && isRefusal(opened)) return opened
  const page = await ask(opened ? { after: opened.position } : {})
  if (isRefusal(page)) return page
  const { position } = page
  return {
    page,
    paging: {
      has_more: position !== undefined,
      ...(position !== undefined && { next_cursor: sealCursor(world, binding, position) }),
    },
  }
}
