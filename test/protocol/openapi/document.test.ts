/** The OpenAPI document: operations that are not in the endpoint table, and one name per schema. */
import { Validator } from '@seriousme/openapi-schema-validator'
import t from 'tap'
import { api } from '../../../protocol/api.ts'
import { type Row, routeOf } from '../../../protocol/contract.ts'
import { openapi } from '../../../protocol/openapi/document.ts'

interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly deprecated?: boolean
  readonly security?: readonly unknown[]
  readonly parameters: readonly { readonly name?: string; readonly $ref?: string }[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}
type Content = Readonly<Record<string, { readonly schema: Schema }>>
type Schema = Readonly<Record<string, unknown>>
interface Document {
  readonly servers: readonly { readonly url: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}
const documentOf = (settings: { public_url?: string } = {}) =>
  openapi({ brand: 'Service', version: '0.1.0', ...settings }) as unknown as Document
const document = documentOf()
const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

t.test('the document is valid OpenAPI 3.1', async (t) => {
  const { valid, errors } = await new Validator().validate(structuredClone({ ...document }))
  t.ok(valid, JSON.stringify(errors ?? '').slice(0, 500))
})

t.test('HTTP triggers are listed as an operation without a credential', async (t) => {
  const operation = document.paths['/triggers/http/{http_handle}']?.['post']
  t.strictSame(operation?.security, [])
  t.strictSame(
    operation?.parameters.map(({ name }) => name),
    ['http_handle', 'idempotency_key', 'X-Idempotency-Key', 'X-Service-Signature'],
  )
  t.match(operation?.responses['202']?.content?.['application/json']?.schema, {
    $ref: '#/components/schemas/EventAccepted',
  })
  t.notOk(operation?.responses['403'], 'it has no permission to lack')
})

t.test('the servers are a production server and a local one on port 8080', async (t) => {
  t.strictSame(
    documentOf({ public_url: 'https://baton.example.org' }).servers.map(({ url }) => url),
    ['https://baton.example.org/v1', 'http://localhost:8080/v1'],
  )
  t.equal(document.servers[0]?.url, '/v1', 'without a public address, where it was served')
})

t.test('exactly the aliases are deprecated and have the tag compat', async (t) => {
  for (const [name, row] of Object.entries(api as Readonly<Record<string, Row>>)) {
    const { method, path } = routeOf(row)
    const operation = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    const alias = row.shape.alias !== undefined
    t.equal(operation?.deprecated ?? false, alias, `${name}: deprecated`)
    t.equal(operation?.tags.includes('compat'), alias, `${name}: compat`)
  }
})

t.test('every record in a response is a named schema', async (t) => {
  const inline = (schema: Schema): boolean => isObject(schema['properties'])
  for (const { operationId, responses } of operations)
    for (const { content } of Object.values(responses)) {
      const schema = content?.['application/json']?.schema
      if (schema) t.match(schema['$ref'], /^#\/components\/schemas\//, operationId)
    }
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    const { items } = isObject(schema['properties']) ? schema['properties'] : {}
    if (isObject(items) && isObject(items['items']))
      t.notOk(inline(items['items']), `the items of ${name} have a name`)
  }
  const used = new Set(JSON.stringify(document).match(/#\/components\/schemas\/\w+/g))
  for (const name of Object.keys(document.components.schemas))
    t.ok(used.has(`#/components/schemas/${name}`), `${name} is used`)
})

t.test('no schema is written twice', async (t) => {
  const places = new Map<string, string[]>()
  const visit = (value: unknown, place: string): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, member] of Object.entries(value)) visit(member, `${place}/${key}`)
    if (!isObject(value)) return
    const { type, properties } = value
    if (type === 'object' && isObject(properties) && Object.keys(properties).length > 0) {
      const text = JSON.stringify(value)
      places.set(text, [...(places.get(text) ?? []), place])
    }
  }
  visit(document, '#')
  t.strictSame(
    [...places.values()].filter(({ length }) => length > 1),
    [],
    'name these shapes in protocol/openapi/schemas.ts',
  )
})
