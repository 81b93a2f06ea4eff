/**
 * The subset of JSON Schema for outputs: accepted keywords are enforced, and all others are
 * refused.
 */
import t from 'tap'
import { valueFaults } from '../../protocol/rules/json-schema/validate.ts'
import { checkOutput } from '../../protocol/sessions/check.ts'
import { limits } from '../../protocol/sessions/limits.ts'

type Open = Record<string, unknown>
const fits = (schema: Open, value: unknown): boolean =>
  valueFaults({ type: 'object', properties: { v: schema }, required: ['v'] }, { v: value }, '')
    .length === 0

t.test('every accepted keyword is enforced', async (t) => {
  const cases: readonly (readonly [Open, unknown, unknown])[] = [
    [{ type: 'string' }, 'a', 1],
    [{ type: ['string', 'null'] }, null, 1],
    [{ type: 'integer' }, 1, 1.5],
    [{ type: 'string', nullable: true }, null, 1],
    [{ enum: ['a', { b: 1 }] }, { b: 1 }, 'b'],
    [{ minLength: 2 }, 'ab', 'a'],
    [{ maxLength: 2 }, '😀😀', 'abc'],
    [{ pattern: '^a+$' }, 'aa', 'ab'],
    [{ minimum: 2 }, 2, 1],
    [{ maximum: 2 }, 2, 3],
    [{ exclusiveMinimum: 2 }, 3, 2],
    [{ exclusiveMaximum: 2 }, 1, 2],
    [{ multipleOf: 0.1 }, 0.3, 0.35],
    [{ type: 'array', minItems: 1 }, [1], []],
    [{ maxItems: 1 }, [1], [1, 2]],
    [{ items: { type: 'number' } }, [1], ['a']],
    [{ type: 'object', required: ['a'] }, { a: 1 }, {}],
    [{ properties: { a: { type: 'number' } } }, { a: 1 }, { a: '1' }],
    [{ additionalProperties: false, properties: { a: {} } }, { a: 1 }, { b: 1 }],
    [{ additionalProperties: { type: 'number' } }, { b: 1 }, { b: '1' }],
    [{ oneOf: [{ type: 'string' }, { minLength: 2 }] }, 'a', 'ab'],
    [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, 1, true],
    [{ allOf: [{ type: 'string' }, { minLength: 2 }] }, 'ab', 'a'],
  ]
  for (const [schema, good, bad] of cases)
    t.same(
      [
        fits(schema, good),
        fits(schema, bad),
        checkOutput({ type: 'object', properties: { v: schema } }, 's'),
      ],
      [true, false, []],
      JSON.stringify(schema),
    )
})

t.test('keywords that are not enforced are refused at any depth', async (t) => {
  for (const keyword of [
    '$ref',
    '$defs',
    'if',
    'then',
    'else',
    'const',
    'patternProperties',
    'prefixItems',
  ]) {
    t.match(checkOutput({ type: 'object', [keyword]: {} }, 's'), [{ field: `s.${keyword}` }])
    t.match(
      checkOutput(
        { type: 'object', properties: { a: { items: { anyOf: [{ [keyword]: {} }] } } } },
        's',
      ),
      [{ field: `s.properties.a.items.anyOf[0].${keyword}` }],
    )
    t.same(
      checkOutput({ type: 'object', properties: { [keyword]: { type: 'string' } } }, 's'),
      [],
      `a field may be called ${keyword}`,
    )
  }
  t.match(checkOutput({ type: 'array' }, 's'), [{ field: 's.type' }])
  t.match(checkOutput({ type: 'object', description: 'x'.repeat(limits.output_schema) }, 's'), [
    { field: 's', expected: { maxBytes: limits.output_schema } },
  ])
  t.match(checkOutput({ type: 'object', properties: { a: { pattern: '(?=x)' } } }, 's'), [
    { field: 's.properties.a.pattern' },
  ])
})
