/** Converts the changes of an audit entry to rows, or to one line of text. */

import { isolate } from '../../../client/isolate.ts'
import type { AuditEntry } from '../../../protocol/projects/rows.ts'

/** A changed attribute. Without `from`, it was not set before. Without `to`, it was removed. */
export interface ChangeRow {
  readonly name: string
  readonly from: unknown
  readonly to: unknown
}

const isPair = (value: unknown): value is { readonly from?: unknown; readonly to?: unknown } =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).length > 0 &&
  Object.keys(value).every((name) => name === 'from' || name === 'to')

/**
 * Returns a row for each attribute. Returns undefined if a change does not consist of `from`, `to`
 * or both.
 */
export function changeRows(changes: AuditEntry['changes']): readonly ChangeRow[] | undefined {
  const rows: ChangeRow[] = []
  for (const [name, value] of Object.entries(changes ?? {})) {
    if (!isPair(value)) return undefined
    rows.push({ name, from: value.from, to: value.to })
  }
  return rows
}

/** Maximum length of a shown value, in characters. The rest is replaced by an ellipsis. */
const MAX_CHARACTERS = 60
const textOf = (value: unknown): string => {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '–')
  return isolate(text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text)
}
/**
 * Returns the changes as one line, such as `name: a → b`; '' for no changes. If a change does
 * not consist of `from`, `to` or both, the line contains only the names of the attributes.
 */
export function changeSummary(changes: AuditEntry['changes']): string {
  const rows = changeRows(changes)
  if (!rows) return Object.keys(changes ?? {}).join(', ')
  return rows
    .map(({ name, from, to }) =>
      from === undefined ? `${name}: ${textOf(to)}` : `${name}: ${textOf(from)} → ${textOf(to)}`,
    )
    .join('; ')
}
