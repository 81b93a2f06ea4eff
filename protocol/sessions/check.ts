/**
 * Validation of requests to sessions beyond what the JSON Schema can express. Each fault contains
 * the exact path of the field, but never the inline data of a file.
 */
import type { JsonObject } from '../common.ts'
import type { FieldError } from '../errors.ts'
import { isJsonObject } from '../rules/json-object.ts'
import { limits } from './limits.ts'
import { outputSchemaFaults } from './output-schema.ts'
import { type Block, blockTypes } from './turns/blocks.ts'

const images: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const sources = {
  image: ['base64', 'url', 'artifact'],
  document: ['base64', 'url', 'text', 'file', 'artifact'],
} as const
const needs: Readonly<Record<string, readonly string[]>> = {
  base64: ['media_type', 'data'],
  url: ['url'],
  text: ['media_type', 'data'],
  file: ['file_id'],
  artifact: ['artifact_id'],
}
const bytesOf = (text: string): number => new TextEncoder().encode(text).length
const isText = (value: unknown): value is string => typeof value === 'string'

/**
 * Whether a message is dropped as a whole because one of its blocks has the type `file`, which the
 * service cannot read.
 */
export const isDropped = (content: readonly JsonObject[]): boolean =>
  content.some(({ type }) => type === 'file')

/** The types of blocks that an input may contain. */
const personal: ReadonlySet<string> = new Set(['text', 'image', 'document', 'input_file'])
/** Returns the faults of the content of an input. */
export function checkContent(content: readonly JsonObject[], path: string): FieldError[] {
  if (isDropped(content)) return []
  const faults = content.flatMap((block, index) => {
    const at = `${path}[${index}]`
    if (isText(block['type']) && personal.has(block['type'])) return checkBlock(block, at)
    return [
      {
        field: `${at}.type`,
        message: 'is not a block type that is allowed in an input',
        expected: ['text', 'image', 'document'],
        actual: block['type'],
      },
    ]
  })
  return faults.length === 0 &&
    content.every((block) => block['type'] === 'text' && !String(block['text']).trim())
    ? [{ field: path, message: 'must not be blank' }]
    : faults
}

function checkBlock(block: JsonObject, at: string): FieldError[] {
  const { type, source } = block
  const texts: Readonly<Record<string, string>> = { text: 'text', thinking: 'thinking' }
  const text = isText(type) ? texts[type] : undefined
  if (text !== undefined)
    return isText(block[text]) ? [] : [{ field: `${at}.${text}`, message: 'must be a text' }]
  if (type === 'input_file')
    return isText(block['file_url']) || isText(block['file_data']) || isText(block['file_id'])
      ? checkSource(ingestSource(block), 'document', at)
      : [{ field: at, message: 'give file_url, file_data or file_id' }]
  if (type === 'image' || type === 'document')
    return isJsonObject(source)
      ? checkSource(source, type, `${at}.source`)
      : [{ field: `${at}.source`, message: 'is required' }]
  if (type === 'tool_use')
    return [
      ...(['id', 'name'] as const)
        .filter((name) => !isText(block[name]) || block[name] === '')
        .map((name) => ({ field: `${at}.${name}`, message: 'must be a text' })),
      ...(isJsonObject(block['input'])
        ? []
        : [{ field: `${at}.input`, message: 'must be an object' }]),
    ]
  if (type === 'tool_result') {
    const { tool_use_id, content, is_error } = block
    return [
      ...(isText(tool_use_id) ? [] : [{ field: `${at}.tool_use_id`, message: 'must be a text' }]),
      ...(is_error === undefined || typeof is_error === 'boolean'
        ? []
        : [{ field: `${at}.is_error`, message: 'must be true or false' }]),
      ...(content === undefined ||
      isText(content) ||
      (Array.isArray(content) && content.every(isJsonObject))
        ? []
        : [{ field: `${at}.content`, message: 'must be a text or blocks' }]),
    ]
  }
  return [
    {
      field: `${at}.type`,
      message: 'is not a block type',
      expected: blockTypes.filter((name) => name !== 'reminder'),
      actual: type,
    },
  ]
}

function checkSource(source: JsonObject, kind: 'image' | 'document', at: string): FieldError[] {
  const { type, media_type, data } = source
  if (!isText(type) || !(sources[kind] as readonly string[]).includes(type))
    return [
      {
        field: `${at}.type`,
        message: `is not a source of an ${kind}`,
        expected: sources[kind],
        actual: type,
      },
    ]
  const missing = (needs[type] ?? []).filter((name) => !isText(source[name]) || source[name] === '')
  if (missing.length > 0)
    return missing.map((name) => ({ field: `${at}.${name}`, message: 'must be a text' }))
  if (kind === 'image' && type === 'base64' && !images.has(String(media_type)))
    return [
      {
        field: `${at}.media_type`,
        message: 'is not an image type that models accept',
        expected: [...images],
        actual: media_type,
      },
    ]
  if (type === 'base64' && !/^[A-Za-z0-9+/\r\n]*={0,2}$/.test(String(data)))
    return [{ field: `${at}.data`, message: 'is not base64' }]
  const size =
    type === 'base64'
      ? Math.floor((String(data).replaceAll(/[=\r\n]/g, '').length * 3) / 4)
      : type === 'text'
        ? bytesOf(String(data))
        : 0
  if (size > limits.inline)
    return [
      {
        field: `${at}.data`,
        message: `is larger than ${limits.inline} bytes; send it as an attachment`,
        expected: { maxBytes: limits.inline },
        actual: size,
      },
    ]
  return type === 'url' && !/^https?:\/\//.test(String(source['url']))
    ? [{ field: `${at}.url`, message: 'must be an http or https address' }]
    : []
}

const ingestSource = ({ file_url, file_data, file_id, mime_type }: JsonObject): JsonObject =>
  isText(file_url)
    ? { type: 'url', url: file_url }
    : isText(file_id)
      ? { type: 'file', file_id }
      : base64Of(String(file_data), mime_type)
function base64Of(text: string, mime: unknown): JsonObject {
  const url = /^data:([^;,]+);base64,(.*)$/s.exec(text)
  return url
    ? { type: 'base64', media_type: url[1], data: url[2] }
    : { type: 'base64', media_type: isText(mime) ? mime : 'application/octet-stream', data: text }
}
/**
 * Converts valid blocks to their stored form. A block of type `input_file`, which another API
 * dialect uses, becomes a document.
 */
export const ingest = (content: readonly JsonObject[]): Block[] =>
  content.map((block) => {
    if (block['type'] !== 'input_file') return block as Block
    const { type: _, file_url, file_data, file_id, mime_type, filename, ...rest } = block
    return {
      ...rest,
      type: 'document',
      source: ingestSource({ file_url, file_data, file_id, mime_type }),
      ...(isText(filename) && { title: filename }),
    } as Block
  })

/** Returns the faults of metadata. */
export function checkMetadata(metadata: JsonObject | undefined, path: string): FieldError[] {
  const size = metadata ? bytesOf(JSON.stringify(metadata)) : 0
  return size > limits.metadata
    ? [
        {
          field: path,
          message: `must have at most ${limits.metadata} bytes as JSON`,
          expected: { maxBytes: limits.metadata },
          actual: size,
        },
      ]
    : []
}

/** Returns the faults of application context. */
export function checkContext(
  items: readonly { readonly name: string; readonly content: string }[],
  path: string,
): FieldError[] {
  const { items: most, name: longest, content: largest, total } = limits.context
  if (items.length > most)
    return [
      {
        field: path,
        message: `has more than ${most} items`,
        expected: { maxItems: most },
        actual: items.length,
      },
    ]
  const faults = items.flatMap(({ name, content }, index): FieldError[] => {
    const at = `${path}[${index}]`
    const size = bytesOf(content)
    return [
      ...(/^[a-z][a-z0-9-]*$/.test(name) && name.length <= longest
        ? []
        : [
            {
              field: `${at}.name`,
              message:
                `must have 1 to ${longest} lower-case letters, digits and hyphens, ` +
                'beginning with a letter',
              actual: name,
            },
          ]),
      ...(items.findIndex((other) => other.name === name) < index
        ? [{ field: `${at}.name`, message: 'is given twice', actual: name }]
        : []),
      ...(content === '' ? [{ field: `${at}.content`, message: 'must not be empty' }] : []),
      ...(content.length > largest || size > largest
        ? [
            {
              field: `${at}.content`,
              message: `must have at most ${largest} bytes`,
              expected: { maxBytes: largest },
              actual: size,
            },
          ]
        : []),
    ]
  })
  const whole = items.reduce((sum, { content }) => sum + bytesOf(content), 0)
  return whole > total
    ? [
        ...faults,
        {
          field: path,
          message: `must have at most ${total} bytes in all`,
          expected: { maxBytes: total },
          actual: whole,
        },
      ]
    : faults
}

/** Returns the faults of an output schema. */
export function checkOutput(schema: JsonObject, path: string): FieldError[] {
  const size = bytesOf(JSON.stringify(schema))
  if (size > limits.output_schema)
    return [
      {
        field: path,
        message: `must have at most ${limits.output_schema} bytes as JSON`,
        expected: { maxBytes: limits.output_schema },
        actual: size,
      },
    ]
  return schema['type'] === 'object'
    ? outputSchemaFaults(schema, path)
    : [
        {
          field: `${path}.type`,
          message: 'must be object',
          expected: 'object',
          actual: schema['type'],
        },
      ]
}

/**
 * Returns the faults of appended messages. Each tool use must have its result in the next message,
 * so that no history ends with an unanswered tool use.
 */
export function checkAppended(
  messages: readonly {
    readonly role: string
    readonly content: readonly JsonObject[]
    readonly metadata?: JsonObject
  }[],
): FieldError[] {
  let open: string[] = []
  const faults = messages.flatMap(({ role, content, metadata }, index): FieldError[] => {
    if (isDropped(content)) return []
    const at = `messages[${index}]`
    const blocks = content.flatMap((block, i) => {
      const where = `${at}.content[${i}]`
      if (block['type'] === 'reminder')
        return [{ field: `${where}.type`, message: 'is reserved for the service' }]
      if (block['type'] === 'tool_use' && role !== 'assistant')
        return [{ field: `${where}.type`, message: 'is allowed only in messages of the assistant' }]
      return checkBlock(block, where)
    })
    const results = content
      .filter((block) => block['type'] === 'tool_result')
      .map((block) => String(block['tool_use_id']))
    const left = open.filter((id) => !results.includes(id))
    const odd = results.filter((id) => !open.includes(id))
    open = content
      .filter((block) => block['type'] === 'tool_use')
      .map((block) => String(block['id']))
    return [
      ...blocks,
      ...checkMetadata(metadata, `${at}.metadata`),
      ...left.map((id) => ({
        field: `${at}.content`,
        message: 'must begin with the result of the preceding tool use',
        expected: id,
      })),
      ...odd.map((id) => ({
        field: `${at}.content`,
        message: 'contains the result of a tool use that is not in the preceding message',
        actual: id,
      })),
    ]
  })
  return [
    ...faults,
    ...open.map((id) => ({
      field: `messages[${messages.length - 1}].content`,
      message: 'contains a tool use without a result',
      actual: id,
    })),
  ]
}
