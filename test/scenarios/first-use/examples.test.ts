/**
 * The examples of the API reference: every operation has an example that conforms to the
 * operation's schemas.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { unauthenticated } from '../../../protocol/access/unauthenticated-rows.ts'
import { api } from '../../../protocol/api.ts'
import type { Row } from '../../../protocol/contract.ts'
import { openapi } from '../../../protocol/openapi/document.ts'
import type { Examples } from '../../../protocol/openapi/examples.ts'
import { recordExamples } from '../../reference/record.ts'
import { service, undocumented } from '../../support/service.ts'

t.setTimeout(300_000)
const file = new URL('../../../protocol/openapi/examples.json', import.meta.url)
const again =
  'record them again: EXAMPLES=accept npm test -- test/scenarios/first-use/examples.test.ts --timeout=0'

t.test(
  'examples are recorded from a real service',
  {
    skip: process.env['EXAMPLES'] === 'accept' ? false : 'they are recorded on demand',
  },
  async () => {
    const s = await service()
    try {
      writeFileSync(file, `${JSON.stringify(await recordExamples(s), null, 1)}\n`)
    } finally {
      await s.stop()
    }
  },
)

const read = (): Examples => JSON.parse(readFileSync(file, 'utf8')) as Examples
type Operations = Readonly<
  Record<string, Pick<Row, 'verb'> & { readonly shape: Partial<Row['shape']> }>
>
const operations: Operations = { ...api, ...unauthenticated }

t.test('every operation has exactly one example', async (t) => {
  t.strictSame(Object.keys(read()).sort(), Object.keys(operations).sort(), again)
})

t.test('an example has the members that its operation describes, and no secret', async (t) => {
  for (const [name, { status, answer }] of Object.entries(read())) {
    const row = operations[name] as Row
    const described = [row.shape.status ?? 200, ...(row.shape.alsoStatus ?? []), row.shape.bare]
    t.ok(status === 101 ? row.shape.stream === 'socket' : described.includes(status), name)
    if (answer !== undefined && typeof answer === 'object')
      t.equal(undocumented(name, row, answer), undefined, `${name}: ${again}`)
  }
  const text = JSON.stringify(read())
  t.notMatch(text, /bat_(?!example)[A-Za-z0-9_-]{10,}/, 'no key')
  t.notMatch(text, /127\.0\.0\.1|\/tmp\//, 'no address or folder of the recording machine')
  t.notMatch(text, /\b[a-z]+_\d{10}/, 'ids have the form of real ids')
})

t.test(
  'the document contains each example next to its schema, and the example is valid',
  async (t) => {
    const document = openapi({ brand: 'Service', version: '0.1.0', examples: read() })
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
    ajv.addSchema({ ...document, $id: 'document' })
    const paths = document['paths'] as Record<string, Record<string, unknown>>
    const valid = (schemaAt: string, value: unknown) => {
      const validate = ajv.compile({ $ref: `document#${schemaAt}` })
      return validate(value) ? undefined : JSON.stringify(validate.errors?.slice(0, 3))
    }
    const shown = new Set<string>()
    for (const [path, methods] of Object.entries(paths))
      for (const [method, operation] of Object.entries(methods)) {
        const at =
          '/paths/' +
          path
            .replaceAll('~', '~0')
            .replaceAll('/', '~1')
            .replaceAll('{', '%7B')
            .replaceAll('}', '%7D') +
          `/${method}`
        const { operationId, requestBody, responses } = operation as {
          operationId: string
          requestBody?: { content: Record<string, { example?: unknown }> }
          responses: Record<string, { content?: Record<string, { example?: unknown }> }>
        }
        const bodies = [
          ...Object.entries(requestBody?.content ?? {}).map(
            ([type, { example }]) => [`requestBody/content`, type, example] as const,
          ),
          ...Object.entries(responses).flatMap(([status, { content = {} }]) =>
            Object.entries(content).map(
              ([type, { example }]) => [`responses/${status}/content`, type, example] as const,
            ),
          ),
        ]
        for (const [place, type, example] of bodies) {
          if (example === undefined) continue
          shown.add(`${operationId} ${place.startsWith('request') ? 'request' : 'answer'}`)
          const fault = valid(`${at}/${place}/${type.replace('/', '~1')}/schema`, example)
          t.equal(fault, undefined, `${operationId} ${place} ${type}`)
        }
      }
    for (const [name, { body, answer }] of Object.entries(read())) {
      if (body !== undefined) t.ok(shown.has(`${name} request`), `${name}: the request is shown`)
      if (answer !== undefined) t.ok(shown.has(`${name} answer`), `${name}: the answer is shown`)
    }
  },
)
