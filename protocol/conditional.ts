/**
 * Conditional updates (RFC 9110, sections 8.8.3 and 13.1.1). A reply that contains a record has the
 * entity tag of the record in the `ETag` header. An update with `If-Match` is performed only if the
 * record still has one of the given tags.
 *
 * Invariants:
 * C1. A command is conditional if a query reads the same path, and both reply with the record and
 *     its `updated_at`. Exceptions are commands that expect a `version` of the record, and rows
 *     that declare `untagged`.
 * C2. Owner and gateway compute a tag with the same function, from the fields that the command can
 *     set, so the owner can check a tag from any reply with the record.
 */
import { api, type RowName } from './api.ts'
import { pathShape, type Row, routeOf, type Table } from './contract.ts'
import { getOwn } from './lookup.ts'
import { canonicalJson } from './rules/canonical-json.ts'

const namesIn = (schema: unknown): readonly string[] =>
  Object.keys((schema as { readonly properties?: object } | undefined)?.properties ?? {})
const isRecord = ({ shape }: Row): boolean => namesIn(shape.reply).includes('updated_at')
/**
 * Whether a command already has a condition of its own: its body may contain the expected version
 * of the record.
 */
const hasVersion = ({ shape }: Row): boolean =>
  namesIn(shape.reply).includes('version') &&
  namesIn(shape.body).some((name) => name === 'version' || name === 'expected_version')

/** The fields that determine the tag of a record, by name of each row whose reply contains it. */
interface Conditional {
  /** The fields by the name of the command. */
  readonly commands: Readonly<Record<string, readonly string[]>>
  /** The fields by the name of the command or query. */
  readonly rows: Readonly<Record<string, readonly string[]>>
}
/**
 * Returns, for each conditional row of a table, the fields that determine the tag of its record.
 */
function conditionalRows(table: Table): Conditional {
  const rows = Object.entries(table)
  const reads = new Map(
    rows
      .filter(([, row]) => row.verb === 'query' && routeOf(row).method === 'GET' && isRecord(row))
      .map(([name, row]) => [pathShape(routeOf(row).path), { name, row }]),
  )
  const [commands, all]: [Record<string, string[]>, Record<string, string[]>] = [{}, {}]
  for (const [name, row] of rows) {
    const { method, path } = routeOf(row)
    const read = reads.get(pathShape(path))
    if (row.verb !== 'command' || !/^(PATCH|PUT)$/.test(method) || row.shape.untagged) continue
    if (!read || !isRecord(row) || hasVersion(row)) continue
    const shown = namesIn(read.row.shape.reply)
    const fields = namesIn(row.shape.body).filter((field) => shown.includes(field))
    commands[name] = all[name] = all[read.name] = fields
  }
  return { commands, rows: all }
}
const { commands, rows } = conditionalRows(api)
/** The names of the commands that accept the `If-Match` header. */
export const conditionalCommands: readonly string[] = Object.keys(commands)

const routesOf = (names: object): ReadonlySet<string> =>
  new Set(Object.keys(names).map((name) => api[name as RowName].route))
const [conditional, tagged] = [routesOf(commands), routesOf(rows)]
/** Whether a row accepts the `If-Match` header. */
export const isConditional = ({ route }: Pick<Row, 'route'>): boolean => conditional.has(route)
/** Whether the reply of a row has an `ETag` header. */
export const isTagged = ({ route }: Pick<Row, 'route'>): boolean => tagged.has(route)

/**
 * Returns a non-cryptographic 64-bit hash as text: two 32-bit hashes that are computed like FNV-1a,
 * with different offsets and multipliers.
 */
function hash(text: string): string {
  let [a, b] = [0x811c9dc5, 0x9dc5811c]
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 0x01000193)
    b = Math.imul(b ^ code, 0x85ebca6b)
  }
  return [a, b].map((part) => (part >>> 0).toString(36)).join('')
}

/**
 * Returns the entity tag of a record with its quotation marks, or undefined if the row is not
 * tagged. The tag consists of the time of the last change, and of a hash of the fields, because
 * changes within one millisecond have the same time.
 * @param name name of a row that replies with the record.
 */
export function entityTagOf(name: string, record: unknown): string | undefined {
  const fields = getOwn(rows, name)
  if (!fields || typeof record !== 'object' || record === null) return undefined
  const values = record as Readonly<Record<string, unknown>>
  const time = String(values['updated_at']).replaceAll(/\D/g, '')
  return `"${time}-${hash(canonicalJson(fields.map((field) => values[field])))}"`
}

const TAG = /(W\/)?("[\x21\x23-\x7e\x80-\uffff]*")/
const TAGS = new RegExp(`^\\s*${TAG.source}(?:\\s*,\\s*${TAG.source})*\\s*$`)
/**
 * Parses the value of `If-Match`. `*` matches every record. Weak tags match none, because
 * `If-Match` compares strongly. Returns undefined for a value that is not valid.
 */
export function tagsIn(value: string): readonly string[] | '*' | undefined {
  if (value.trim() === '*') return '*'
  if (!TAGS.test(value)) return undefined
  return [...value.matchAll(new RegExp(TAG, 'g'))].flatMap(([, weak, tag = '']) =>
    weak === undefined ? [tag] : [],
  )
}
