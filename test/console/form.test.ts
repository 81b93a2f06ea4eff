/** Forms from JSON Schemas: their controls and their values. */
import fc from 'fast-check'
import t from 'tap'
import { initialOf, type Plan, planOf } from '../../console/form/plan.ts'
import {
  canShow,
  changesOf,
  conflictsOf,
  faultAt,
  localTime,
  numberOf,
  repeatedNames,
  schemaOfDeclared,
  unshownFaults,
  utcTime,
  withMember,
} from '../../console/form/value.ts'

const controls = (plan: Plan): unknown =>
  plan.control === 'object'
    ? Object.fromEntries(plan.members.map(({ name, plan: member }) => [name, controls(member)]))
    : plan.control === 'list'
      ? [controls(plan.item)]
      : plan.control

t.test('a schema has a control for each kind of value', async (t) => {
  const plan = planOf(
    {
      type: 'object',
      required: ['name'],
      $defs: { money: { type: 'number', title: 'Amount' } },
      properties: {
        name: { type: 'string', maxLength: 20 },
        report: { type: 'string' },
        day: { type: 'string', format: 'date' },
        at: { type: ['string', 'null'], format: 'date-time' },
        mail: { type: 'string', format: 'email' },
        colour: { enum: ['red', 'blue'] },
        size: {
          oneOf: [
            { const: 1, title: 'Small' },
            { const: 2, title: 'Large' },
          ],
        },
        flags: { type: 'array', items: { enum: ['a', 'b'] } },
        price: { $ref: '#/$defs/money' },
        maybe: { anyOf: [{ $ref: '#/$defs/money' }, { type: 'null' }] },
        urgent: { type: 'boolean', default: false },
        lines: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } } } },
        free: { type: 'object' },
        either: { oneOf: [{ type: 'string' }, { type: 'number' }] },
      },
    },
    'input',
  )
  t.strictSame(controls(plan), {
    name: 'text',
    report: 'long',
    day: 'date',
    at: 'date-time',
    mail: 'email',
    colour: 'choice',
    size: 'choice',
    flags: 'choices',
    price: 'number',
    maybe: 'number',
    urgent: 'boolean',
    lines: [{ n: 'number' }],
    free: 'json',
    either: 'json',
  })
  t.strictSame(initialOf(plan), { urgent: false })
  if (plan.control !== 'object') return t.fail('no object')
  t.strictSame(
    plan.members.filter(({ required }) => required).map(({ name }) => name),
    ['name'],
  )
  t.equal(plan.members.find(({ name }) => name === 'price')?.plan.label, 'Amount')
  t.ok(canShow(plan, { name: 'x', lines: [{ n: 1 }] }))
  t.notOk(canShow(plan, { name: 'x', other: 1 }), 'an unknown member would be hidden')
  t.notOk(canShow(plan, { name: {} }))
})

t.test('any schema has a finite plan', async (t) => {
  const itself = { type: 'object', properties: { next: { $ref: '#' } } }
  t.match(controls(planOf(itself, '')), { next: { next: {} } })
  t.equal(planOf({ $ref: '#' }, '').control, 'json')
  fc.assert(
    fc.property(
      fc.object({
        key: fc.constantFrom('type', 'properties', 'items', '$ref', 'enum', 'oneOf', 'a'),
      }),
      (schema) => {
        initialOf(planOf(schema as Record<string, unknown>, ''))
      },
    ),
    { numRuns: 200 },
  )
})

t.test('faults are shown at their fields, and otherwise above the form', async (t) => {
  const plan = planOf(
    {
      type: 'object',
      properties: {
        a: { type: 'string' },
        list: { type: 'array', items: { type: 'string' } },
        any: { type: 'object' },
      },
    },
    '',
  )
  const faults = [
    { field: 'a', message: 'is too long' },
    { field: 'a', message: 'is bad' },
    { field: 'list[0]', message: 'is empty' },
    { field: 'list[7]', message: 'is missing' },
    { field: 'any.deep[0].x', message: 'is wrong' },
    { field: 'unknown', message: 'is not known' },
    { field: '', message: 'is too large' },
  ]
  t.equal(faultAt(faults, 'a'), 'is too long; is bad')
  t.equal(faultAt(faults, 'list'), undefined)
  t.equal(faultAt(faults, 'any', true), 'is wrong')
  t.strictSame(
    unshownFaults(faults, plan, { list: ['x'] }).map(({ field }) => field),
    ['list[7]', 'unknown', ''],
  )
})

t.test('values keep their types', async (t) => {
  t.strictSame(withMember({ a: 1 }, 'b', 2), { a: 1, b: 2 })
  t.strictSame(withMember({ a: 1, b: 2 }, 'b', undefined), { a: 1 })
  t.strictSame(withMember(undefined, '__proto__', 1), JSON.parse('{"__proto__": 1}'))
  t.strictSame([' 1.5 ', '', '1e3', '1x', '0x10'].map(numberOf), [1.5, undefined, 1000, '1x', 16])
  const at = '2031-02-03T04:05:00.000Z'
  t.equal(utcTime(localTime(at)), at)
  t.strictSame([localTime('no time'), utcTime('')], ['', undefined])
  t.strictSame(
    schemaOfDeclared({
      order: { type: 'integer', required: true, description: 'Its number' },
      region: { type: 'string', required: true, default: 'eu' },
      any: { type: 'money' },
    }),
    {
      type: 'object',
      properties: {
        order: { type: 'integer', description: 'Its number' },
        region: { type: 'string', default: 'eu' },
        any: {},
      },
      required: ['order'],
    },
  )
})

t.test('only edited fields are changes, and a field that both changed is a conflict', async (t) => {
  const stored = { name: 'theirs', description: 'new', tags: [{ key: 'a', value: '1' }] }
  const edits = { name: 'mine', tags: [{ key: 'a', value: '1' }] }
  t.strictSame(changesOf(edits, stored), { name: 'mine' })
  t.strictSame(conflictsOf({ name: 'mine' }, { name: 'old' }, stored), ['name'])
  t.strictSame(conflictsOf({ name: 'mine' }, { name: 'theirs' }, stored), [])
  t.strictSame(conflictsOf({ name: 'theirs' }, { name: 'old' }, stored), [], 'both agree')
})
t.test('names that occur twice are found', async (t) => {
  t.strictSame([...repeatedNames(['a', '', 'b', 'a', ''])], ['a'])
})
