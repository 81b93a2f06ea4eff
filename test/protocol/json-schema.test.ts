/**
 * JSON schemas from users: faults are reported with their path, and the work is limited for any
 * schema and value.
 */
import fc from 'fast-check'
import t from 'tap'
import { Check } from 'typebox/schema'
import { formats } from '../../protocol/rules/json-schema/formats.ts'
import { schemaFaults } from '../../protocol/rules/json-schema/schema.ts'
import { checkValue, valueFaults } from '../../protocol/rules/json-schema/validate.ts'

const faultsOf = (schema: unknown, value: unknown) => valueFaults(schema, value, 'input')

t.test('faults have the path of the value', async (t) => {
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
  t.strictSame(faultsOf(schema, { id: 'x', lines: [{ 'a/b': 1 }] }), [])
  t.strictSame(faultsOf({ ...schema, additionalProperties: false }, { name: 'x' }), [
    { field: 'input.id', message: 'is required' },
    { field: 'input.name', message: 'is not a known field' },
  ])
  t.strictSame(
    faultsOf(
      { oneOf: [{ required: ['a'] }, { required: ['b'], properties: { b: { type: 'string' } } }] },
      { b: 1 },
    ),
    [
      {
        field: 'input.b',
        message: 'must be a string',
        expected: 'string',
        actual: 'number',
      },
    ],
  )
  t.match(faultsOf(schema, { id: 'x', lines: [{}, { 'a/b': 'no' }] }), [
    { field: 'input.lines[1]["a/b"]', message: 'must be an integer' },
  ])
})

t.test('every keyword works as the standard defines it', async (t) => {
  const cases: readonly (readonly [object, unknown, unknown])[] = [
    [{ const: { a: [1] } }, { a: [1] }, { a: [2] }],
    [{ prefixItems: [{ type: 'string' }], items: false }, ['a'], ['a', 1]],
    [{ items: [{ type: 'string' }], additionalItems: { type: 'number' } }, ['a', 1], ['a', 'b']],
    [{ contains: { type: 'number' }, maxContains: 1 }, ['a', 1], [1, 2]],
    [
      { uniqueItems: true },
      [{ a: 1, b: 2 }, { a: 1 }],
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    ],
    [{ patternProperties: { '^x-': { type: 'number' } } }, { 'x-a': 1, y: 'b' }, { 'x-a': 'b' }],
    [
      { patternProperties: { '^x-': true }, additionalProperties: false },
      { 'x-a': 1 },
      { 'x-a': 1, y: 1 },
    ],
    [{ propertyNames: { maxLength: 2 } }, { ab: 1 }, { abc: 1 }],
    [{ dependentRequired: { a: ['b'] } }, { a: 1, b: 1 }, { a: 1 }],
    [{ dependentSchemas: { a: { required: ['b'] } } }, { b: 1 }, { a: 1 }],
    [{ dependencies: { a: ['b'], c: { required: ['d'] } } }, { a: 1, b: 1 }, { c: 1 }],
    [{ if: { type: 'string' }, then: { minLength: 2 }, else: { minimum: 2 } }, 'ab', 1],
    [{ not: { type: 'string' } }, 1, 'a'],
    [{ oneOf: [{ type: 'number' }, { minimum: 2 }] }, 1, 2],
    [{ $defs: { a: { type: 'string' } }, items: { $ref: '#/$defs/a' } }, ['x'], [1]],
    [{ $defs: { a: { $anchor: 'n', type: 'string' } }, items: { $ref: '#n' } }, ['x'], [1]],
    [{ properties: { next: { $ref: '#' } }, additionalProperties: false }, { next: {} }, { a: 1 }],
    [
      { allOf: [{ properties: { a: true } }], unevaluatedProperties: false },
      { a: 1 },
      { a: 1, b: 1 },
    ],
    [{ anyOf: [{ prefixItems: [true] }], unevaluatedItems: false }, [1], [1, 2]],
    [{ minimum: 1, exclusiveMinimum: true }, 2, 1],
    [{ type: 'string', nullable: true }, null, 1],
    [{ multipleOf: 0.01 }, 19.99, 19.999],
    [{ multipleOf: 1 }, 1e300, 1e-10],
    [{ minLength: 2 }, '😀😀', '😀'],
    [{ pattern: '^\\p{L}+$' }, 'Straße', '12'],
    [{ pattern: '^\\s$' }, '\u00a0', 'x'],
    [{ enum: [] }, undefined, 1],
  ]
  for (const [schema, good, bad] of cases) {
    if (good !== undefined) t.strictSame(faultsOf(schema, good), [], JSON.stringify(schema))
    t.not(faultsOf(schema, bad).length, 0, `${JSON.stringify(schema)} and ${JSON.stringify(bad)}`)
    if (!('items' in schema && Array.isArray(schema.items)))
      t.strictSame(schemaFaults(schema, 's'), [], `${JSON.stringify(schema)} may be saved`)
  }
})

t.test('a check agrees with another validator', async () => {
  const leaf = fc.constantFrom<object | boolean>(
    true,
    false,
    { type: 'string' },
    { type: ['number', 'null'] },
    { minimum: 1 },
    { const: 1 },
    { enum: ['a', null, [1]] },
    { pattern: '^a|b$' },
    { minLength: 2 },
    { maxItems: 1 },
    { required: ['a'] },
    { minProperties: 1 },
    { uniqueItems: true },
  )
  const { schema } = fc.letrec<{ schema: object | boolean }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3 },
      leaf,
      fc.record(
        {
          properties: fc.dictionary(fc.constantFrom('a', 'b'), tie('schema')),
          patternProperties: fc.dictionary(fc.constantFrom('^a', 'b$'), tie('schema')),
          additionalProperties: tie('schema'),
          items: tie('schema'),
          prefixItems: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
          contains: tie('schema'),
          propertyNames: tie('schema'),
        },
        { requiredKeys: [] },
      ),
      fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
      fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
      fc.record({ not: tie('schema') }),
      fc.record({ if: tie('schema'), then: tie('schema'), else: tie('schema') }),
    ),
  }))
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 2 },
      fc.constantFrom<unknown>('a', 'ab', '', 0, 1, null, true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'ab'), tie('value')),
    ),
  }))
  void fc.assert(
    fc.property(schema, value, (one, of) => Check(one, of) === (faultsOf(one, of).length === 0)),
    { numRuns: 3000 },
  )
})

t.test('work is limited: a check that exceeds it reports a fault of the value', async (t) => {
  let blowUp: object = { const: 1 }
  for (let i = 0; i < 30; i++) blowUp = { anyOf: [blowUp, blowUp] }
  let deep: unknown = 1
  for (let i = 0; i < 100_000; i++) deep = [deep]
  const wide = Array.from({ length: 3000 }, (_, index) => ({ a: index }))
  const cases: readonly (readonly [object | boolean, unknown])[] = [
    [blowUp, 2],
    [{ $ref: '#' }, {}],
    [{ items: { $ref: '#' } }, deep],
    [{ uniqueItems: true }, [deep, deep]],
    [{ uniqueItems: true }, Array.from({ length: 80_000 }, (_, index) => [index])],
    [{ const: [[]] }, deep],
    [{ items: { enum: wide } }, wide],
    [{ items: { pattern: '^([^,]*,){50}x$' } }, [','.repeat(1_000_000)]],
    [{ patternProperties: { '(a|b|ab)*c': true } }, { ['ab'.repeat(500_000)]: 1 }],
  ]
  // The cases are named by index: the first schema contains the same objects many times, so its
  // text would be too large.
  for (const [index, [schema, value]] of cases.entries())
    t.match(
      faultsOf(schema, value),
      [
        {
          field: /^input/,
          message: /^(cannot be checked against its schema: needs more|is not the)/,
        },
      ],
      `case ${index}`,
    )
  t.strictSame(
    faultsOf({ pattern: '^(a+)+$' }, `${'a'.repeat(50_000)}!`),
    [{ field: 'input', message: 'must match ^(a+)+$', expected: '^(a+)+$' }],
    'a pattern that backtracks elsewhere is answered',
  )
})

t.test('a stored schema that cannot be applied reports the faulty path', async (t) => {
  const nested = `${'('.repeat(9000)}a${')'.repeat(9000)}`
  t.match(checkValue({ properties: { id: { pattern: nested } } }, { id: 'x' }, 'input'), {
    unusable: { place: 'properties.id.pattern', message: /longer than 1024 characters/ },
  })
  t.match(checkValue({ properties: { id: { pattern: '(?=a)b' } } }, { id: 'x' }, 'input'), {
    unusable: { place: 'properties.id.pattern', message: /look-around is not supported/ },
  })
  t.match(checkValue({ patternProperties: { '(a)\\1': true } }, { a: 1 }, 'input'), {
    unusable: { place: 'patternProperties', message: /back references are not supported/ },
  })
  t.match(checkValue({ anyOf: [{ $ref: '#/nowhere' }] }, 1, 'input'), {
    unusable: { place: 'anyOf[0].$ref', message: '#/nowhere names no schema of this document' },
  })
  t.strictSame(
    checkValue({ properties: { id: { pattern: nested } } }, { other: 1 }, 'input'),
    { faults: [] },
    'values without the pattern are checked as before',
  )
})

t.test('a schema is checked when it is saved', async (t) => {
  const fields = (schema: unknown) => schemaFaults(schema, 's').map(({ field }) => field)
  const faulty: readonly (readonly [unknown, string])[] = [
    [1, 's'],
    [{ type: 'nope' }, 's.type'],
    [{ properties: { a: { required: 'b' } } }, 's.properties.a.required'],
    [{ $defs: { one: { minLength: -1 } } }, 's.$defs.one.minLength'],
    [{ properties: [] }, 's.properties'],
    [{ allOf: [] }, 's.allOf'],
    [{ items: 1 }, 's.items'],
    [{ $ref: '#/$defs/none' }, 's.$ref'],
    [{ properties: { a: { $ref: 'https://example.org/x' } } }, 's.properties.a.$ref'],
    [{ properties: { a: { $id: 'b' } } }, 's.properties.a.$id'],
    [{ properties: { a: { pattern: '(' } } }, 's.properties.a.pattern'],
    [{ pattern: '(?!a)' }, 's.pattern'],
    [{ pattern: '(a)\\1' }, 's.pattern'],
    [{ pattern: '((a{1,50}){1,50}){1,50}' }, 's.pattern'],
    [{ pattern: `${'('.repeat(200)}${')'.repeat(200)}` }, 's.pattern'],
    [{ patternProperties: { '(?<=a)b': true } }, 's.patternProperties["(?<=a)b"]'],
    [{ description: 'x'.repeat(40_000) }, 's'],
    [{ $ref: '#' }, 's'],
    [{ $defs: { a: { allOf: [{ $ref: '#/$defs/b' }] }, b: { $ref: '#/$defs/a' } } }, 's'],
  ]
  for (const [schema, field] of faulty)
    t.strictSame(fields(schema), [field], JSON.stringify(schema).slice(0, 80))
  let deep: unknown = {}
  for (let i = 0; i < 50; i++) deep = { not: deep }
  t.match(schemaFaults(deep, 's'), [{ message: /nested/ }])
  for (let i = 0; i < 100_000; i++) deep = { enum: [deep] }
  t.match(schemaFaults(deep, 's'), [{ field: 's', message: /nested/ }])
  t.strictSame(
    fields({
      $id: 'https://example.org/orders',
      dependentRequired: { type: ['a'] },
      'x-ui': { type: 'select' },
      enum: [{ type: 'nope', pattern: '(' }],
      properties: {
        type: { const: { type: 1 } },
        pattern: { type: 'string' },
        $ref: { type: 'string' },
        tree: { items: { $ref: '#' } },
      },
    }),
    [],
  )
})

t.test('formats', async (t) => {
  const cases: Readonly<
    Record<string, readonly [good: readonly string[], bad: readonly string[]]>
  > = {
    date: [['2024-02-29'], ['2023-02-29', '2024-13-01', '2024-1-1']],
    time: [
      ['10:00:00Z', '23:59:60Z', '00:59:60+01:00'],
      ['24:00:00Z', '10:00:00', '10:00:60Z'],
    ],
    'date-time': [['2024-02-29T10:00:00.5Z'], ['2024-02-30T10:00:00Z', '2024-02-29']],
    duration: [
      ['P1Y2M3DT4H5M6S', 'P3W', 'PT5M'],
      ['P', 'PT', '1D', 'P1H'],
    ],
    email: [
      ['a.b@example.org', '"a b"@x.org', 'a@[127.0.0.1]'],
      ['a', '@b', 'a..b@c', 'a@-b'],
    ],
    hostname: [
      ['a', 'a-b.example'],
      ['-a', 'a_b', `${'a'.repeat(64)}.b`],
    ],
    ipv4: [['127.0.0.1'], ['256.0.0.1', '01.0.0.1', '1.2.3']],
    ipv6: [
      ['::', '::1', '1::8', '1:2:3:4:5:6:7:8', '::ffff:1.2.3.4'],
      [':::', '1', '1::2::3', '1:2:3:4:5:6:7:8:9', '12345::', '1.2.3.4::'],
    ],
    uri: [
      ['https://a.b:80/c?d#e', 'urn:x:y', 'mailto:a@b', 'http://[::1]:8/'],
      ['a/b', 'http://a b', 'http://%zz', 'http://a/[', 'http://[a]@b/', 'x:a#b#c'],
    ],
    'uri-reference': [
      ['', '/a', '?b', '#c', '../d'],
      ['\\a', 'a b'],
    ],
    uuid: [['123e4567-e89b-12d3-a456-426614174000'], ['123e4567e89b12d3a456426614174000']],
    'json-pointer': [
      ['', '/a~0b/~1'],
      ['a', '/~2'],
    ],
    'relative-json-pointer': [
      ['0', '1/a', '2#'],
      ['/a', '01', '-1'],
    ],
  }
  for (const [name, [good, bad]] of Object.entries(cases)) {
    const test = formats.get(name)
    t.strictSame(
      good.filter((text) => !test?.(text)),
      [],
      `${name} fits`,
    )
    t.strictSame(
      bad.filter((text) => test?.(text)),
      [],
      `${name} does not fit`,
    )
  }
})
