/** The AsyncAPI document: valid, complete, and built from the schemas of the frames. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import t from 'tap'
import { api } from '../../../protocol/api.ts'
import type { Row } from '../../../protocol/contract.ts'
import { asyncapi } from '../../../protocol/openapi/asyncapi.ts'
import { streamFrames } from '../../../protocol/openapi/frames.ts'
import { transcriptFrames } from '../../../protocol/sessions/transcript/frames.ts'
import { down, up } from '../../../protocol/workers/socket.ts'
import { fromPerson, toPerson } from '../../../protocol/workers/terminals.ts'

interface Document {
  readonly servers: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly channels: Readonly<
    Record<string, { readonly messages: Readonly<Record<string, object>> }>
  >
  readonly components: {
    readonly schemas: Readonly<Record<string, unknown>>
    readonly messages: Readonly<Record<string, { readonly payload: unknown }>>
  }
}
const documentOf = (settings: { public_url?: string } = {}) =>
  asyncapi({ brand: 'Service', version: '0.1.0', ...settings }) as unknown as Document
const document = documentOf()

t.test('the document is valid AsyncAPI 3.0', async (t) => {
  const schema = createRequire(import.meta.url).resolve(
    '@asyncapi/specs/schemas/3.0.0-without-$id.json',
  )
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true })
  const validate = ajv.compile(JSON.parse(readFileSync(schema, 'utf8')) as object)
  for (const one of [document, documentOf({ public_url: 'https://baton.example.org/base' })])
    t.ok(validate(one), JSON.stringify(validate.errors?.slice(0, 3)))
  t.notOk(validate({ ...document, channels: { broken: { address: 1 } } }), 'a fault is found')
})

t.test('every stream of the table and the worker socket is a channel', async (t) => {
  const streams = Object.entries(api as Readonly<Record<string, Row>>)
    .filter(([, { verb, shape }]) => verb === 'stream' && shape.alias === undefined)
    .map(([name]) => name)
  t.strictSame(Object.keys(document.channels).sort(), streams.sort())
})

t.test('every frame is a message, with its own schema', async (t) => {
  const typesOf = (channel: string) =>
    Object.keys(document.channels[channel]?.messages ?? {}).map((id) =>
      id.slice(channel.length + 1).replace(/^from_(worker|person)\./, ''),
    )
  t.strictSame(typesOf('worker.socket').sort(), [...Object.keys(down), ...Object.keys(up)].sort())
  t.strictSame(
    typesOf('environment.terminal').sort(),
    [...Object.keys(toPerson), ...Object.keys(fromPerson)].sort(),
  )
  for (const [name, frames] of Object.entries(streamFrames))
    t.strictSame(typesOf(name).sort(), Object.keys(frames ?? {}).sort(), name)
  const { payload } = document.components.messages['session.transcript_stream.message.delta'] ?? {}
  t.match(payload, { $ref: /^#\/components\/schemas\// })
  t.strictSame(
    document.components.schemas['SessionTranscriptStreamMessageDeltaFrame'],
    JSON.parse(JSON.stringify(transcriptFrames['message.delta'])),
  )
})

t.test('all references resolve', async (t) => {
  const refs = new Set(
    [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path = '']) => path),
  )
  for (const path of refs) {
    const [top = '', second = '', third = '', fourth = ''] = path.split('/')
    let found: unknown = document
    for (const key of [top, second, third, fourth].filter((part) => part !== ''))
      found = (found as Readonly<Record<string, unknown>> | undefined)?.[key]
    t.ok(found, path)
  }
})
