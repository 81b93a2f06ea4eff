/**
 * The JSON Schemas of blueprint files are valid under draft 2020-12, are closed, and accept the
 * example.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { parse } from 'yaml'
import { editorSchemas, schemaNames } from '../../../protocol/blueprints/file-schemas.ts'
import { resourceTypes } from '../../../protocol/blueprints/resources.ts'

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
for (const [name, schema] of editorSchemas()) ajv.addSchema(schema, name)
const faultsOf = (name: string, value: unknown): string[] => {
  const check = ajv.getSchema(name)
  if (!check) throw new Error(`There is no schema ${name}.`)
  return check(value)
    ? []
    : (check.errors ?? []).map((error) => `${error.instancePath} ${error.message}`)
}

t.test('there is a schema for every type, and each compiles', async (t) => {
  t.strictSame(schemaNames, ['blueprint.json', ...resourceTypes.map((type) => `${type}.json`)])
  t.strictSame([...editorSchemas().keys()], schemaNames)
  for (const [name, schema] of editorSchemas()) {
    t.equal(schema['$schema'], 'https://json-schema.org/draft/2020-12/schema', name)
    t.ok(ajv.validateSchema(schema), name)
    t.type(ajv.getSchema(name), 'function', name)
  }
})

t.test('the schemas are closed and describe their fields', async (t) => {
  t.strictSame(faultsOf('agent.json', { kind: 'agent', key: 'a', name: 'a' }), [])
  t.match(faultsOf('agent.json', { kind: 'agent', key: 'a', name: 'a', colour: 'red' }), [
    /additional/,
  ])
  t.match(faultsOf('agent.json', { kind: 'loop', key: 'a', name: 'a' }), [/kind/])
  t.match(faultsOf('agent.json', { key: 'a', name: 'a' }), [/kind/])
  t.strictSame(
    faultsOf('agent.json', {
      kind: 'agent',
      key: 'a',
      name: 'a',
      system_prompt: { $file: 'a.md' },
    }),
    [],
  )
  t.ok(faultsOf('agent.json', { kind: 'agent', key: 'a', name: { $file: 'a.md' } }).length > 0)
  t.strictSame(faultsOf('blueprint.json', { kind: 'agent', key: 'a', name: 'a' }), [])
  t.ok(faultsOf('blueprint.json', { kind: 'agent', key: 'a', name: 'a', colour: 'red' }).length > 0)
  t.strictSame(
    faultsOf('blueprint.json', {
      blueprint_key: 'desk',
      resources: { skills: [{ key: 's', name: 's', instructions: { $file: 's.md' } }] },
    }),
    [],
  )
  t.ok(faultsOf('blueprint.json', { resources: { skills: [{ key: 's', nam: 's' }] } }).length > 0)
  t.ok(faultsOf('blueprint.json', { mode: 'apply' }).length > 0)
  const agent = editorSchemas().get('agent.json')?.['properties'] as Record<
    string,
    { description?: string }
  >
  t.match(agent['key']?.description, /Local key/)
})

t.test('the example fits the schemas that it names', async (t) => {
  const root = join(import.meta.dirname, '../../../examples/support-desk')
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) => extname(name) === '.yaml',
  )
  t.ok(names.length > 10)
  for (const name of names) {
    const text = readFileSync(join(root, name), 'utf8')
    const schema = /^# yaml-language-server: \$schema=\S+\/schemas\/(\S+)$/m.exec(text)?.[1] ?? ''
    t.strictSame(faultsOf(schema, parse(text, { logLevel: 'silent' })), [], name)
  }
})
