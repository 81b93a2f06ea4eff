/** Formats audit entries as CSV or JSON Lines. */
import { forSpreadsheet } from '../../../client/cli/tables/spreadsheet.ts'
import type { AuditEntry } from '../../../protocol/projects/rows.ts'

const columns = [
  'created_at',
  'project_id',
  'action',
  'resource_type',
  'resource_id',
  'resource_name',
  'actor_type',
  'actor_id',
  'user_id',
  'credential_type',
  'credential_id',
  'ip_address',
  'user_agent',
  'request_id',
  'changes',
  'id',
] as const

/** Returns a value as a CSV field (RFC 4180) that spreadsheets do not evaluate as a formula. */
function quoted(value: unknown): string {
  const plain = value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)
  const text = forSpreadsheet(plain)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Returns entries as CSV with a header line. */
export const csvOf = (entries: readonly AuditEntry[]): string =>
  [
    columns.join(','),
    ...entries.map((entry) => columns.map((name) => quoted(entry[name])).join(',')),
  ]
    .map((line) => `${line}\r\n`)
    .join('')

/** Returns entries as JSON, one per line. */
export const jsonLinesOf = (entries: readonly AuditEntry[]): string =>
  entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
