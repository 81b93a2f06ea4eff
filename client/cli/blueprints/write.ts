/**
 * Writes an exported blueprint as files: one folder for each type, one file for each resource, and
 * long texts in separate files. Invariants:
 * W1. Equal exports produce identical files.
 * W2. Reading the files yields the exported resources.
 */
import { createHash } from 'node:crypto'
import { Document, Scalar, visit } from 'yaml'
import type { ResourceInput, ResourceTypeName } from '../../../protocol/blueprints/resources.ts'
import { resourceTypes } from '../../../protocol/blueprints/resources.ts'
import type { Export } from '../../../protocol/blueprints/schema.ts'
import { resourceFacts } from '../../../protocol/blueprints/types.ts'
import { fileLimits } from './find-files.ts'
import { escapeVariables } from './variables.ts'

export interface Writing {
  readonly format: 'yaml' | 'json'
  /** Address or folder of the JSON Schemas for editors, without a trailing slash. */
  readonly schemas: string
}
/** Fields whose long values are written to separate files. */
const TEXTS = ['system_prompt', 'instructions']
/**
 * Maximum length in characters of a one-line text that is part of the document. A longer text is
 * written to a separate file.
 */
const MAX_INLINE_LENGTH = 120

const isLong = (value: unknown): value is string =>
  typeof value === 'string' &&
  (value.includes('\n') || value.length > MAX_INLINE_LENGTH) &&
  // A text that would change when it is written to a file and read again stays in the document:
  // UTF-8 cannot encode lone surrogates, and readers remove a byte order mark.
  Buffer.from(value).toString() === value &&
  !value.startsWith('\ufeff') &&
  Buffer.byteLength(value) < fileLimits.text

const escaped = (value: unknown): unknown =>
  typeof value === 'string'
    ? escapeVariables(value)
    : Array.isArray(value)
      ? value.map(escaped)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).map(([name, part]) => [name, escaped(part)]))
        : value

/** Names that Windows reserves for devices. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i
/**
 * Returns the base name of a resource's file: its key if that is a valid file name on every system,
 * otherwise a shortened form with a hash. No two names differ only in case.
 */
function fileName(key: string, taken: Set<string>): string {
  const isPlain = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(key) && !RESERVED.test(key)
  const hash = createHash('sha256').update(key).digest('hex')
  const cleaned = key
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .slice(0, 60)
    .replace(/^-+/, '')
  let name = isPlain ? key : `${cleaned || 'resource'}-${hash.slice(0, 8)}`
  for (let length = 8; taken.has(name.toLowerCase()) && length < hash.length; length += 8)
    name = `${cleaned || 'resource'}-${hash.slice(0, length)}`
  taken.add(name.toLowerCase())
  return name
}

/** Formats one document. `files` maps fields to the files that contain their texts. */
function documentText(
  schema: string,
  value: Readonly<Record<string, unknown>>,
  files: ReadonlyMap<string, string>,
  { format, schemas }: Writing,
): string {
  const address = `${schemas}/${schema}.json`
  if (format === 'json') {
    const members = Object.entries(value).map(([name, part]) => [
      name,
      files.has(name) ? { $file: files.get(name) } : escaped(part),
    ])
    return `${JSON.stringify({ $schema: address, ...Object.fromEntries(members) }, null, 2)}\n`
  }
  const document = new Document(
    Object.fromEntries(
      Object.entries(value).map(([name, part]) => {
        const file = files.get(name)
        if (file === undefined) return [name, escaped(part)]
        const scalar = new Scalar(file)
        scalar.tag = '!file'
        return [name, scalar]
      }),
    ),
    { version: '1.2', schema: 'core', aliasDuplicateObjects: false },
  )
  visit(document, {
    // A text that consists only of white space and contains a line break is quoted. Otherwise,
    // `yaml` 2.x would write it as a block scalar, from which it reads a different text.
    Scalar: (_, scalar) => {
      if (typeof scalar.value === 'string' && /^[ \t\n]*\n[ \t\n]*$/.test(scalar.value))
        scalar.type = 'QUOTE_DOUBLE'
    },
  })
  const text = document.toString({ lineWidth: 0, blockQuote: 'literal' })
  return `# yaml-language-server: $schema=${address}\n${text}`
}

function ordered(type: ResourceTypeName, { key, name, ...rest }: ResourceInput) {
  const { match, fields } = resourceFacts[type]
  const names = [match, ...Object.keys(rest).filter((one) => !(one in fields)), ...fieldOrder(type)]
  return Object.fromEntries([
    ['kind', type],
    ['key', key],
    ...(name === undefined ? [] : [['name', name]]),
    ...[...new Set(names)].flatMap((one) =>
      one !== 'name' && rest[one] !== undefined ? [[one, rest[one]]] : [],
    ),
  ])
}
/** Returns the names of a type's fields. Fields whose values are often long come last. */
const fieldOrder = (type: ResourceTypeName): string[] => {
  const names = Object.keys(resourceFacts[type].fields)
  const last = ['system_prompt', 'instructions', 'schema', 'spec', 'steps', 'output', 'cleanup']
  return [
    ...names.filter((one) => !last.includes(one)),
    ...last.filter((one) => names.includes(one)),
  ]
}

/** Returns the files of an export by path relative to the folder, with `/` as separator. */
export function filesOf(
  { resources, ...identity }: Export,
  writing: Writing,
): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  const { format } = writing
  if (Object.keys(identity).length > 0)
    files.set(
      `blueprint.${format}`,
      documentText(
        'blueprint',
        {
          ...(identity.namespace !== undefined && { namespace: identity.namespace }),
          ...(identity.blueprint_key !== undefined && { blueprint_key: identity.blueprint_key }),
          ...(identity.blueprint_version !== undefined && {
            blueprint_version: identity.blueprint_version,
          }),
        },
        new Map(),
        writing,
      ),
    )
  for (const type of resourceTypes) {
    const { array } = resourceFacts[type]
    const taken = new Set<string>()
    for (const input of (resources[array] ?? []) as readonly ResourceInput[]) {
      const name = fileName(input.key, taken)
      const texts = new Map<string, string>()
      for (const field of TEXTS) {
        const text = input[field]
        if (!isLong(text)) continue
        const file = `${name}.${field}.md`
        texts.set(field, file)
        files.set(`${array}/${file}`, `${text}\n`)
      }
      files.set(
        `${array}/${name}.${format}`,
        documentText(type, ordered(type, input), texts, writing),
      )
    }
  }
  return files
}

/** Formats an export as one document, which contains all texts. */
export const singleFile = (exported: Export, writing: Writing): string =>
  documentText('blueprint', { ...exported }, new Map(), writing)
