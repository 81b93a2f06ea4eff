/** Schemas that users give: faults are named where they stand, and no schema holds the gateway up. */
import t from 'tap'
import { faultsOf, unusable } from '../../gateway/schema.ts'
import { checkSchema } from '../../protocol/action/schema.ts'

t.test('faults are named by the place of the value', async (t) => {
  const schema = {
    type: 'object',
    required: ['id'],
    properties: {
      id: { type: 'string' },
      lines: {
        type: 'array',
        items: { type: 'object', properties: { 'a/b': { type: 'integer' } } },
      },
    },
  }
  t.strictSame(faultsOf(schema, { id: 'x', lines: [{ 'a/b': 1 }] }, 'input'), [])
  t.strictSame(faultsOf(schema, {}, 'input'), [{ field: 'input.id', message: 'is required' }])
  t.strictSame(faultsOf({ ...schema, additionalProperties: false }, { name: 'x' }, 'input'), [
    { field: 'input.id', message: 'is required' },
    { field: 'input.name', message: 'is not a known field' },
  ])
  t.strictSame(
    faultsOf(
      { oneOf: [{ required: ['a'] }, { required: ['b'], properties: { b: { type: 'string' } } }] },
      { b: 1 },
      'input',
    ).map(({ field }) => field),
    ['input.b'],
  )
  t.match(faultsOf(schema, { id: 1 }, 'input'), [{ field: 'input.id' }])
  t.match(
    faultsOf(schema, { id: 'x', lines: [{}, { 'a/b': 'no' }] }, 'input').map(({ field }) => field),
    ['input.lines[1]["a/b"]'],
  )
})

t.test('a schema that never ends is given up', async (t) => {
  const slow = { properties: { text: { type: 'string', pattern: '^(a+)+$' } } }
  const began = performance.now()
  t.match(faultsOf(slow, { text: `${'a'.repeat(40)}!` }, 'input'), [
    { field: 'input', message: /within 100 ms/ },
  ])
  t.ok(performance.now() - began < 2000, 'and that within its time')
  t.match(faultsOf({ $ref: '#' }, {}, 'input'), [{ field: 'input', message: /cannot be used/ }])
})

t.test('what cannot be used is said when it is given', async (t) => {
  t.match(unusable({ $ref: '#/$defs/none' }, 'input_schema'), { field: 'input_schema' })
  t.equal(
    unusable(
      {
        type: 'object',
        $defs: { one: { type: 'string' } },
        properties: { a: { $ref: '#/$defs/one' } },
      },
      'input_schema',
    ),
    undefined,
  )
  t.match(unusable({ type: 'nope' }, 'input_schema'), { field: 'input_schema.type' })
  t.match(unusable({ properties: { a: { required: 'b' } } }, 'input_schema'), {
    field: 'input_schema.properties.a.required',
  })
  t.match(unusable({ $defs: { one: { minLength: -1 } } }, 'input_schema'), {
    field: 'input_schema.$defs.one.minLength',
  })
  t.equal(
    unusable(
      {
        prefixItems: [{ type: 'string' }],
        items: false,
        dependentRequired: { type: ['a'] },
        'x-ui': { type: 'select' },
        enum: [{ type: 'nope' }],
        properties: { type: { const: { type: 1 } } },
      },
      'input_schema',
    ),
    undefined,
  )
  t.match(checkSchema({ properties: { a: { $ref: 'https://example.org/x' } } }, 'input_schema'), [
    { field: 'input_schema.properties.a.$ref' },
  ])
  t.match(checkSchema({ properties: { a: { pattern: '(' } } }, 'input_schema'), [
    { field: 'input_schema.properties.a.pattern' },
  ])
  t.match(checkSchema({ description: 'x'.repeat(40_000) }, 'input_schema'), [
    { field: 'input_schema' },
  ])
  t.strictSame(
    checkSchema(
      {
        properties: { pattern: { type: 'string' }, $ref: { type: 'string' } },
        enum: [{ pattern: '(' }],
      },
      'input_schema',
    ),
    [],
  )
  let deep: unknown = {}
  for (let i = 0; i < 50; i++) deep = { not: deep }
  t.match(checkSchema(deep, 'input_schema'), [{ message: /nested/ }])
})
