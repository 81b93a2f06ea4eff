/**
 * Formats a reply: on a terminal as a table or YAML, elsewhere as JSON, or in the requested format.
 * Tables are derived from the records alone, so a new resource needs no code here.
 */
import Table from 'cli-table3'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { stringify } from 'yaml'
import type { JsonObject } from '../../protocol/common.ts'
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import { escapeControls } from '../plain.ts'
import { Mistake } from './mistake.ts'
import type { Shell } from './shell.ts'

/**
 * Formats that `-o` accepts. `table` omits columns that do not fit the terminal; `wide` shows every
 * field with a plain value.
 */
const formats = ['table', 'wide', 'json', 'yaml'] as const
export type Format = (typeof formats)[number] | FieldFormat
/**
 * `field=<name>`: one field of the record, or of each record of a list, for shell variables. Dots
 * separate the names of nested fields.
 */
export type FieldFormat = `field=${string}`
const FIELD = 'field='
/** Whether a format is that of one field. */
export const isFieldFormat = (format: string | undefined): format is FieldFormat =>
  format?.startsWith(FIELD) === true && format.length > FIELD.length
/** Whether a string is a valid format. */
export const isFormat = (text: string): text is Format =>
  formats.some((format) => format === text) || isFieldFormat(text)

/**
 * Column order: identifying fields first, then statuses, then times, then other fields in the order
 * of the reply, and finally other ids.
 */
const FIRST = ['id', 'worker_instance_id', 'handle', 'name', 'display_name', 'title']
const SECOND = ['status', 'state', 'kind', 'type', 'event_type', 'enabled', 'role', 'email']
const LAST = ['created_at', 'updated_at']
/** Maximum number of characters of a cell in a `table`. Longer values are truncated. */
const MAX_CELL_LENGTH = 44
/** Number of spaces between two columns. */
const GAP = 2

/** Returns the records of a list reply; undefined for a reply that is not a list. */
export function itemsOf(reply: unknown): readonly JsonObject[] | undefined {
  const items = isJsonObject(reply) ? (reply['items'] ?? reply['data']) : undefined
  return Array.isArray(items) && items.every(isJsonObject) ? items : undefined
}

/**
 * Formats a reply.
 * @param width columns of the terminal.
 * @param zone time zone of times in tables.
 * @throws Mistake if no record of the reply has the requested field.
 */
export function formatReply(reply: unknown, format: Format, width: number, zone?: string): string {
  if (format === 'json') return escapeControls(JSON.stringify(reply, null, 2))
  const items = itemsOf(reply)
  if (isFieldFormat(format)) {
    return fieldOf(items ?? [reply], format.slice(FIELD.length))
  }
  if (format === 'yaml' || items === undefined)
    // Only one line break is removed, because others at the end can belong to a text.
    return escapeControls(
      stringify(reply, { lineWidth: format === 'yaml' ? 0 : width }).replace(/\n$/, ''),
    )
  return tableOf(items, format === 'wide' ? Number.POSITIVE_INFINITY : width, zone)
}

/**
 * Returns a field of each record as plain text, one line per record; objects and lists as JSON. The
 * line of a record without the field is empty, because fields can be optional.
 * @param path field names separated by dots.
 * @throws Mistake if there are records, and none of them has the field.
 */
function fieldOf(records: readonly unknown[], path: string): string {
  const found = records.map((record) => memberOf(record, path))
  const [first] = found
  if (first && found.every((one) => 'fields' in one)) {
    const known = 'fields' in first ? first.fields.join(', ') : ''
    throw new Mistake(
      `The response has no field ${path}.${known === '' ? '' : ` Its fields are: ${known}.`}`,
    )
  }
  return found
    .map((one) => ('fields' in one ? undefined : one.value))
    .map((value) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')))
    .join('\n')
}
/** Returns the value at a path, or the names of the fields in the place of a missing one. */
function memberOf(
  record: unknown,
  path: string,
): { readonly value: unknown } | { readonly fields: readonly string[] } {
  let value = record
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name))
      return { fields: isJsonObject(value) ? Object.keys(value) : [] }
    value = (value as JsonObject)[name]
  }
  return { value }
}

/**
 * Formats records as a table. Fields with plain values are columns, and lists of strings are
 * joined.
 * @param width available columns. Table columns that do not fit are omitted.
 */
function tableOf(items: readonly JsonObject[], width: number, zone?: string): string {
  const cut = Number.isFinite(width) ? MAX_CELL_LENGTH : Number.POSITIVE_INFINITY
  const cell = (item: JsonObject, name: string): string => clipText(textOf(item[name], zone), cut)
  const widths = columnsOf(items).map(
    (name) =>
      [
        name,
        Math.max(heading(name).length, ...items.map((item) => cell(item, name).length)),
      ] as const,
  )
  let left = width
  const columns: string[] = []
  for (const [name, wide] of widths) {
    if (columns.length > 0 && wide > left) continue
    columns.push(name)
    left -= wide + GAP
  }
  const table = new Table({
    head: columns.map(heading),
    chars: Object.fromEntries(BORDERS.map((part) => [part, ''])),
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': GAP, compact: true },
  })
  for (const item of items) table.push(columns.map((name) => cell(item, name)))
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}
const BORDERS = [
  ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left'],
  ...['bottom-right', 'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
]
const heading = (name: string): string => name.replaceAll('_', ' ').toUpperCase()

/** Returns the fields that have a plain value in at least one record, most important first. */
function columnsOf(items: readonly JsonObject[]): string[] {
  const names = new Set(items.flatMap((item) => Object.keys(item)))
  const plain = [...names].filter((name) => items.some((item) => isPlain(item[name])))
  const rank = (name: string): number => {
    const first = FIRST.indexOf(name)
    if (first >= 0) return first
    const second = SECOND.indexOf(name)
    if (second >= 0) return 10 + second
    // Flags are mostly false, so they come after fields with texts and numbers.
    if (items.every((item) => typeof (item[name] ?? false) === 'boolean')) return 55
    const last = LAST.indexOf(name)
    // Times of creation and change are more useful than fields that only some resources have.
    return last >= 0 ? 30 + last : name.endsWith('_id') ? 60 : 50
  }
  return plain.sort((a, b) => rank(a) - rank(b))
}
const isPlain = (value: unknown): boolean =>
  ['string', 'number', 'boolean'].includes(typeof value) ||
  (Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'string'))

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
/** Formats a value as text. Times are local, with a precision of seconds. */
function textOf(value: unknown, zone?: string): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string' && TIME.test(value))
    return new Date(value).toLocaleString('sv-SE', zone === undefined ? {} : { timeZone: zone })
  if (typeof value === 'object' && !isPlain(value)) return ''
  return String(value).replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
}
export const clipText = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text

/** Width in characters of a table that is not printed to a terminal. */
const DEFAULT_COLUMNS = 160

/** Adds the option `-o` to a command. */
export const formatted = (command: Command): Command =>
  command.addOption(
    new Option(
      '-o, --format <format>',
      `output format: ${formats.join(', ')}, or field=<name> for one field as plain text; ` +
        'by default a table or YAML on a terminal, otherwise JSON',
    )
      .choices(formats)
      .argParser((text: string): Format => {
        if (isFormat(text)) return text
        throw new InvalidArgumentError(
          `Allowed choices are ${formats.join(', ')}, and field=<name>.`,
        )
      }),
  )

/** Returns the format of the output: the given one, or that of a terminal or of another output. */
export const usedFormat = ({ columns }: Pick<Shell, 'columns'>, format?: Format): Format =>
  format ?? (columns === undefined ? 'json' : 'table')

/**
 * Prints a reply.
 * @param format the format that was given with `-o`, if any.
 * @param none the remark for an empty list; without it, an empty list is printed.
 */
export function printReply(
  shell: Pick<Shell, 'print' | 'note' | 'columns'>,
  reply: unknown,
  format: Format | undefined,
  none?: string,
): void {
  const used = usedFormat(shell, format)
  const empty = none !== undefined && itemsOf(reply)?.length === 0
  if (empty) shell.note(none)
  // As JSON or YAML, even an empty list is printed, because programs read that output.
  if (!empty || used === 'json' || used === 'yaml')
    shell.print(formatReply(reply, used, shell.columns ?? DEFAULT_COLUMNS))
}
