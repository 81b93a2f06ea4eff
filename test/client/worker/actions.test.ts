/** The stock actions that `baton worker` offers: `print`, `fail`, `time`, `json` and `random`. */
import fc from 'fast-check'
import t from 'tap'
import { json } from '../../../client/actions/json.ts'
import { random } from '../../../client/actions/random.ts'
import { stockActions, time } from '../../../client/actions.ts'
import { jobOf, logTo, notPublished } from './stand.ts'

const context = (lines: string[] = []) => ({
  signal: new AbortController().signal,
  job: jobOf('x'),
  log: logTo(lines),
  publish: notPublished,
})

t.test('print writes a line in printf style, and returns it', async (t) => {
  const lines: string[] = []
  t.equal(
    stockActions['print']?.({ message: '%s has %d', args: ['basket', 3] }, context(lines)),
    'basket has 3',
  )
  t.strictSame(lines, ['basket has 3'])
  t.equal(stockActions['print']?.({}, context()), '')
  t.equal(stockActions['print']?.({ message: { a: 1 } }, context()), '{"a":1}')
})
t.test('fail always fails', async (t) => {
  t.throws(() => stockActions['fail']?.({ message: 'as asked' }, context()), {
    message: 'as asked',
  })
  t.throws(() => stockActions['fail']?.({}, context()))
})
t.test('time is RFC 3339, in UTC unless another zone is given', async (t) => {
  const at = new Date('2031-02-03T04:05:06.789Z')
  t.equal(time({}, at), '2031-02-03T04:05:06.789Z')
  t.match(time({ utc: false }, at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.789[+-]\d\d:\d\d$/)
  t.equal(Date.parse(time({ utc: false }, at)), at.getTime())
})

t.test('json', async (t) => {
  const run = (operation: string, more: Record<string, unknown>) => json({ operation, ...more })
  t.strictSame(json({ data: '{"a":[1]}' }), { a: [1] }, 'parse is the default')
  t.strictSame(run('parse', { data: { already: 'parsed' } }), { already: 'parsed' })
  t.throws(() => run('parse', { data: '{' }), /data is not JSON/)
  t.throws(() => run('parse', {}), /data is missing/)
  t.equal(run('stringify', { data: { a: [1, null] } }), '{"a":[1,null]}')
  const data = { items: [{ name: 'x', 'a/b': 1, 'm~n': 2 }], deep: { key: { here: true } } }
  for (const [query, found] of [
    ['', data],
    ['$', data],
    ['items[0].name', 'x'],
    ['$.items[0].name', 'x'],
    ['/items/0/name', 'x'],
    ['/items/0/a~1b', 1],
    ['/items/0/m~0n', 2],
    ['deep.key.here', true],
    ['deep["key"].here', true],
    ['items[7].name', null],
    ['deep.toString', null],
    ['items.0.name', 'x'],
  ] as const)
    t.strictSame(run('query', { data: JSON.stringify(data), query }), found, query)
  t.throws(() => run('query', { data, query: 'a..b[' }), /neither/)
  t.strictSame(run('merge', { data: { a: { x: 1 }, b: 1 }, merge_with: '{"a":{"y":2},"b":[2]}' }), {
    a: { x: 1, y: 2 },
    b: [2],
  })
  t.equal(run('merge', { data: [1], merge_with: 2 }), 2)
  t.strictSame(run('validate', { data: '[1]' }), { valid: true })
  t.match(run('validate', { data: '[1' }), { valid: false, error: /JSON/ })
  t.throws(() => run('toString', {}), /operation must be one of/)
  void fc.assert(
    fc.property(fc.json(), (text) => {
      t.same(
        json({
          operation: 'parse',
          data: json({ operation: 'stringify', data: JSON.parse(text) as unknown }),
        }),
        JSON.parse(text),
      )
    }),
    { numRuns: 30 },
  )
})

t.test('random', async (t) => {
  t.match(random({}), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  t.match(random({ type: 'string', length: 40, charset: 'ab' }), /^[ab]{40}$/)
  t.match(random({ type: 'alphanumeric', length: '8' }), /^[A-Za-z0-9]{8}$/)
  t.match(random({ type: 'hex' }), /^[0-9a-f]{16}$/)
  t.type(random({ type: 'boolean' }), 'boolean')
  t.ok(['a', 'b'].includes(random({ type: 'choice', choices: ['a', 'b'] }) as string))
  t.ok(
    ['a', 'b'].includes(random({ type: 'choice', choices: '["a","b"]' }) as string),
    'a list that a template turned into text',
  )
  t.equal((random({ type: 'uuid', count: 3 }) as unknown[]).length, 3)
  for (const type of ['uuid', 'number', 'float', 'string', 'boolean', 'alphanumeric', 'hex'])
    t.strictSame(
      random({ type, seed: 's', count: 5 }),
      random({ type, seed: 's', count: 5 }),
      `${type} repeats with a seed`,
    )
  t.not(random({ seed: 'a' }), random({ seed: 'b' }))
  t.equal(
    random({ type: 'number', seed: 42, min: 1, max: 1_000_000 }),
    random({ type: 'number', seed: '42', min: '1', max: '1000000' }),
    'a seed may be a number or its text',
  )
  void fc.assert(
    fc.property(
      fc.integer({ min: -1000, max: 1000 }),
      fc.nat(1000),
      fc.string(),
      (min, span, seed) => {
        const whole = random({ type: 'number', min, max: min + span, seed }) as number
        const part = random({ type: 'float', min, max: min + span + 1, seed }) as number
        return (
          Number.isInteger(whole) &&
          whole >= min &&
          whole <= min + span &&
          part >= min &&
          part < min + span + 1
        )
      },
    ),
    { numRuns: 100 },
  )
  for (const [parameters, fault] of [
    [{ type: 'toString' }, /type must be/],
    [{ type: 'number', min: 3, max: 2 }, /less than/],
    [{ type: 'number', min: 0.2, max: 0.8 }, /no whole number in the range/],
    [{ count: 0 }, /count/],
    [{ type: 'choice' }, /choices/],
    [{ type: 'hex', length: -1 }, /length/],
    [{ type: 'float', min: 'x' }, /min must be a number/],
  ] as const)
    t.throws(() => random(parameters), fault)
})
