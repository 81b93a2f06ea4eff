/**
 * The format of blueprint files, and its JSON Schemas for editors. A document in a file is either a
 * resource, with its type as `kind`, or a `FileHeader`. Long texts can be in separate files
 * (`$file`).
 */
import { type TSchema, Type } from 'typebox'
import { Closed } from '../common.ts'
import { isJsonObject } from '../rules/json-object.ts'
import {
  type ResourceTypeName,
  resourceArrays,
  resourceSchemas,
  resourceTypes,
} from './resources.ts'
import { ApplyRequest } from './schema.ts'

const { namespace, blueprint_key, blueprint_version, protect_resources } = ApplyRequest.properties
/**
 * A document without `kind`: the identity of a blueprint, and any number of its resources. The
 * resources are validated one by one.
 */
export const FileHeader = Closed({
  $schema: Type.Optional(Type.String()),
  namespace,
  blueprint_key,
  blueprint_version,
  protect_resources,
  resources: Type.Optional(
    Closed(
      Object.fromEntries(
        Object.keys(resourceArrays).map((name) => [
          name,
          Type.Optional(Type.Array(Type.Object({}), { maxItems: 2000 })),
        ]),
      ),
    ),
  ),
})

type Json = Readonly<Record<string, unknown>>
/**
 * A text can be in a separate file if its schema has neither `pattern` nor `enum`, and either no
 * `maxLength` or a `maxLength` of at least this number of characters.
 */
const LONG = 1000
const isLongText = ({ type, maxLength, pattern, enum: choices }: Json): boolean =>
  type === 'string' &&
  pattern === undefined &&
  choices === undefined &&
  (maxLength === undefined || (typeof maxLength === 'number' && maxLength >= LONG))

/** Extends a schema so that each long text can also be an object that refers to a file. */
function withFiles(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withFiles)
  if (!isJsonObject(schema)) return schema
  if (isLongText(schema)) return { anyOf: [schema, { $ref: '#/$defs/text_file' }] }
  return Object.fromEntries(
    Object.entries(schema).map(([name, part]) =>
      name === 'enum' || name === 'const' || name === 'default' || name === 'propertyNames'
        ? [name, part]
        : [name, withFiles(part)],
    ),
  )
}
const textFile = {
  type: 'object',
  description: 'Text of a file, whose path is relative to this file; in YAML also: !file NAME',
  properties: { $file: { type: 'string', minLength: 1 } },
  required: ['$file'],
  additionalProperties: false,
}
const plain = (schema: TSchema): Json => JSON.parse(JSON.stringify(schema)) as Json
const withDefinitions = (title: string, schema: Json): Json => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title,
  ...schema,
  $defs: { text_file: textFile },
})

function resourceSchema(type: ResourceTypeName): Json {
  const { properties, required, ...rest } = withFiles(plain(resourceSchemas[type])) as {
    readonly properties: Json
    readonly required?: readonly string[]
  }
  return withDefinitions(`Baton: ${type} of a blueprint`, {
    ...rest,
    properties: {
      $schema: { type: 'string' },
      kind: { const: type, description: 'Type of the resource' },
      ...properties,
    },
    required: ['kind', ...(required ?? [])],
  })
}
function blueprintSchema(): Json {
  const header = plain(FileHeader) as { readonly properties: Json }
  const arrays = withFiles(plain(Closed(resourceArrays)))
  return withDefinitions('Baton: blueprint', {
    type: 'object',
    description:
      'A blueprint with its resources, or one resource of the type that the member kind names',
    if: { required: ['kind'] },
    then: {
      properties: { kind: { enum: [...resourceTypes] } },
      allOf: resourceTypes.map((type) => ({
        if: { properties: { kind: { const: type } } },
        then: { $ref: `${type}.json` },
      })),
    },
    else: { ...header, properties: { ...header.properties, resources: arrays } },
  })
}

/** Names of the files that `editorSchemas` returns. */
export const schemaNames: readonly string[] = [
  'blueprint.json',
  ...resourceTypes.map((type) => `${type}.json`),
]
/**
 * Returns the JSON Schemas (draft 2020-12) of blueprint files by file name: `blueprint.json` for
 * any document, and one per resource type, such as `agent.json`.
 */
export const editorSchemas = (): ReadonlyMap<string, Json> =>
  new Map([
    ['blueprint.json', blueprintSchema()],
    ...resourceTypes.map((type) => [`${type}.json`, resourceSchema(type)] as const),
  ])
