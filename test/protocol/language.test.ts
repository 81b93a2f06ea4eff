/** Expressions and templates: their values, their errors, and limits on evaluation. */
import fc from 'fast-check'
import t from 'tap'
import {
  compile,
  ExpressionError,
  evaluate,
  predicate,
  type Roots,
} from '../../protocol/rules/expressions/expression.ts'
import {
  checkTemplate,
  hasTemplate,
  matches,
  renderNative,
  renderText,
} from '../../protocol/rules/expressions/template.ts'

const input = {
  n: 2,
  half: 0.5,
  text: 'Hello',
  list: [1, 2, 3],
  names: ['ann', 'bob'],
  nested: { deep: { x: [{ y: 'found' }] } },
  nothing: null,
  yes: true,
  'odd-name': 'odd',
  in: 'key',
}
const roots: Roots = {
  input,
  event: input,
  config: { region: 'eu' },
  meta: { trigger: 'manual' },
  steps: {
    fetch: { output: { total: 10, items: ['a', 'b'] } },
    '0': { output: { total: 10 } },
    'a-b': { output: 'dashed' },
  },
}
const names = ['input', 'event', 'config', 'meta', 'steps']

const values: [expression: string, value: unknown][] = [
  ['1', 1],
  ['-1', -1],
  ['1.5e3', 1500],
  ['0x10', 16],
  ['"a"', 'a'],
  ["'it\"s'", 'it"s'],
  ['"\\u00e9\\n"', 'é\n'],
  ['r"\\d"', '\\d'],
  ['null', null],
  ['true', true],
  ['[1, "a", null]', [1, 'a', null]],
  ['{name: "x", "b c": [1]}', { name: 'x', 'b c': [1] }],
  ['{"__proto__": 1}', JSON.parse('{"__proto__":1}')],
  // Member access.
  ['input.nested.deep.x[0].y', 'found'],
  ['input["odd-name"]', 'odd'],
  ['input["in"]', 'key'],
  ['input.list[1]', 2],
  ['input.list[input.n]', 3],
  ['event.n == input.n', true],
  ['steps.fetch.output.total', 10],
  ['steps["a-b"].output', 'dashed'],
  ['steps[0].output.total', 10],
  ['config.region', 'eu'],
  ['meta.trigger', 'manual'],
  // Unknown fields and elements are null.
  ['input.no.such.member', null],
  ['input.list[9]', null],
  ['input.list[-1]', null],
  ['input.list.length', null],
  ['input.text.length', null],
  ['steps.later.output.x', null],
  ['input.constructor', null],
  ['input.__proto__.polluted', null],
  ['input["__proto__"]', null],
  ['input.toString', null],
  ['steps.constructor.output', null],
  // All numbers are JSON numbers. There is no separate integer type.
  ['input.n + 1', 3],
  ['1 / 2', 0.5],
  ['7 % 3', 1],
  ['-7 % 3', -1],
  ['2 * 3 + 4', 10],
  ['2 + 3 * 4', 14],
  ['(2 + 3) * 4', 20],
  ['0.1 + 0.2 < 0.31', true],
  ['-input.n', -2],
  ['4 / 2', 2],
  ['"a" + 1', 'a1'],
  ['1 + "a"', '1a'],
  ['"a" + null', 'a'],
  ['"a" + true', 'atrue'],
  ['"x" + input.list', 'x[1,2,3]'],
  ['[1] + [2]', [1, 2]],
  // Comparison.
  ['1 == 1.0', true],
  ['1 == "1"', false],
  ['null == null', true],
  ['input.nothing == null', true],
  ['input.missing == null', true],
  ['input.missing != "x"', true],
  ['input.missing < 1', false],
  ['input.missing > 1', false],
  ['input.missing >= null', false],
  ['1 <= 1', true],
  ['"a" < "b"', true],
  ['input.list == [1, 2, 3]', true],
  ['{a: [1]} == {a: [1]}', true],
  ['{a: 1} == {a: 1, b: 2}', false],
  ['input != input', false],
  // Logic. Null counts as false, and evaluation is lazy.
  ['true && false', false],
  ['true and not false', true],
  ['input.missing || true', true],
  ['input.missing and true', false],
  ['!input.missing', true],
  ['not not true', true],
  ['not input.n == 3', true],
  ['not (input.n == 2) or input.yes', true],
  ['false && 1 / 0 == 1', false],
  ['true or 1 / 0 == 1', true],
  ['input.yes ? "y" : "n"', 'y'],
  ['input.missing ? 1 : not true ? 2 : 3', 3],
  ['not input.text contains "xyz" and input.yes', true],
  // Membership and strings.
  ['2 in input.list', true],
  ['5 in input.list', false],
  ['5 not in input.list', true],
  ['"n" in input', true],
  ['"toString" in input', false],
  ['"ell" in input.text', true],
  ['1 in input.missing', false],
  ['input.text contains "ell"', true],
  ['input.text.contains("ell")', true],
  ['contains(input.text, "ell")', true],
  ['input.text not contains "ell"', false],
  ['input.names contains "bob"', true],
  ['input.missing contains "x"', false],
  ['input.text startsWith "He" && input.text endsWith "lo"', true],
  ['input.text + "!" endsWith "o!"', true],
  ['"a contains b" == "a contains b"', true],
  ['(input.text contains "H") == true', true],
  ['input.text contains "H" == true', true],
  ['"and or not in" contains "not"', true],
  ['{contains: 1}.contains', 1],
  ['input.names contains ("b" + "ob")', true],
  ['input.text matches "^H.*o$"', true],
  ['input.text.matches("^l")', false],
  ['"a1b" matches r"\\d"', true],
  ['"AbC" matches "(?i)^abc$"', true],
  ['"2024-05-01" matches "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"', true],
  ['"foo.bar" matches "^(foo|baz)\\\\.[^a-y]?bar$"', true],
  ['"wordy" matches "\\\\bword\\\\b"', false],
  ['"naïve 😀!" matches "^[a-zï]+ .!$"', true],
  ['"" matches "^$"', true],
  ['"aaa" matches "^(?:a{2}){2}$"', false],
  ['len("a😀")', 2],
  ['len(input.list)', 3],
  ['input.names.len()', 2],
  ['len(input.missing)', 0],
  ['len({a: 1})', 1],
  ['lower("ÀB")', 'àb'],
  ['upper(input.text)', 'HELLO'],
  ['lower(input.missing)', null],
  ['${{ input.n + 1 }}', 3],
  ['  ${{ {"a": {"b": "}}"}} }} ', { a: { b: '}}' } }],
]
t.test('expressions have these values', async (t) => {
  for (const [expression, value] of values) {
    t.same(compile(expression, names), { ok: true }, `${expression} compiles`)
    t.strictSame(evaluate(expression, roots), value, `${expression} is ${JSON.stringify(value)}`)
  }
})

const refusedWhenAuthored: [expression: string, message: RegExp, position?: number][] = [
  ['', /empty/],
  ['1 +', /Unexpected/, 3],
  ['"open', /Unterminated/, 0],
  ['secrets.token', /no secrets here; known: input, event/, 0],
  ['input.a && foo', /no foo/, 11],
  ['a and or b', /./],
  ['input.list.map(x, x + 1)', /no function map/],
  ['input.list.exists(x, x > 1)', /no function exists/],
  ['has(input.n)', /no function has/],
  ['cel.bind(x, 1, x)', /no function bind/],
  ['"a".repeat(9)', /no function repeat/],
  ['constructor("x")', /no function constructor/],
  ['lower("a", "b")', /one operand/],
  ['b"bytes"', /not JSON values/],
  ['1u', /Unexpected/],
  ['9007199254740993', /too large/],
  ['"x".matches("(")', /not closed/],
  ['"x" matches "(?=a)"', /look-around/],
  ['"x" matches "(a)\\\\1"', /not supported/],
  ['"x" matches "*"', /nothing comes before/],
  ['"x" matches "((a{99}){99}){99}"', /too large/],
  ['"x" matches "(((){999}){999}){999}"', /too large/],
  [`"${'x'.repeat(4096)}"`, /longer than 4096/],
  [`${'('.repeat(60)}1${')'.repeat(60)}`, /maxDepth/],
  [Array(400).fill('1').join('+'), /maxAstNodes/],
  ['input.n == 1 // remark', /Unexpected/, 14],
  ['input.a # b', /Unexpected character/, 8],
  ['${{ foo }}', /no foo/, 4],
  ['${{ input.a }} && ${{ input.b }}', /Unexpected/],
  ['steps.my-step.output', /no step here/, 9],
  ['input.a not foo', /./],
  ['not', /Unexpected/],
]
t.test(
  'an expression that does not compile is refused with a message and a position',
  async (t) => {
    for (const [expression, message, position] of refusedWhenAuthored) {
      const result = compile(expression, names)
      t.match(
        result,
        { ok: false, message, ...(position !== undefined && { position }) },
        expression.slice(0, 60),
      )
      if (!/no (secrets|foo|step) /.test(result.ok ? '' : result.message))
        t.throws(() => evaluate(expression, roots), ExpressionError)
    }
  },
)

t.test('an expression can only read its given roots', async (t) => {
  t.match(compile('steps.a.output', ['event', 'meta']), {
    ok: false,
    message: 'there is no steps here; known: event, meta',
  })
  t.throws(() => evaluate('other.x', roots), ExpressionError)
  t.equal(evaluate('config.x', {}), null, 'a root that is known but absent is null')
})

t.test('wrong types are errors of the expression', async (t) => {
  for (const expression of [
    '1 + null',
    'input.missing + 1',
    '1 / 0',
    '5 % 0',
    '1 < "a"',
    '[1] < [2]',
    'input.text - 1',
    '!1',
    '1 && true',
    'lower(1)',
    'len(1)',
    '1 contains 1',
    '1 in 1',
    '1e308 * 10',
    '"a" matches 1',
    '{(1 == 1): 2}',
    '-"a"',
  ]) {
    t.throws(() => evaluate(expression, roots), ExpressionError, expression)
  }
  t.throws(() => evaluate('input.text - 1', roots), {
    message: 'cannot compute text - number, in input.text - 1',
  })
})

t.test('a condition is true, false, or null, which counts as false', async (t) => {
  t.equal(predicate('input.n > 1', roots), true)
  t.equal(predicate('${{ input.n > 2 }}', roots), false)
  t.equal(predicate('input.missing.flag', roots), false)
  for (const expression of ['input.n', '"true"', '[]', '{}'])
    t.throws(() => predicate(expression, roots), ExpressionError, expression)
})

t.test('no pattern, text or document makes an evaluation slow', async (t) => {
  const nested = () => JSON.parse(`${'['.repeat(3000)}${']'.repeat(3000)}`) as unknown
  const hostile = {
    text: 'a'.repeat(300_000),
    deep: nested(),
    deeper: nested(),
    wide: Array.from({ length: 50_000 }, (_, i) => i),
  }
  const doubled = Array(250).fill('input.text').join(' + ')
  for (const expression of [
    'input.text matches "(a|a)*(a|aa)*(a*)*b"',
    'input.text matches "(.*)(.*)(.*)(.*)x"',
    doubled,
    'input.deep == input.deeper',
    '[input.text, input.text, input.text, input.text, input.text, input.text, input.text]',
    Array(100).fill('input.wide + [1] == input.wide').join(' || '),
    'input.deep',
  ]) {
    const start = performance.now()
    t.throws(
      () => evaluate(expression, { input: hostile }),
      ExpressionError,
      expression.slice(0, 60),
    )
    t.ok(performance.now() - start < 10_000, 'it ends soon')
  }
  t.equal(
    evaluate('input.text matches "a+$"', { input: hostile }),
    true,
    'a long text is no problem by itself',
  )
})

t.test('simple conditions are fast', async (t) => {
  const start = performance.now()
  for (let i = 0; i < 50_000; i++) predicate('input.n + 1 > 2 && input.text == "Hello"', roots)
  t.ok(
    50_000 / (performance.now() - start) > 50,
    'far more than 50,000 a second, even on a busy machine',
  )
})

t.test('templates for actions yield text', async (t) => {
  const template = {
    to: '${{ input.names[0] }}@x.org',
    count: '${{ input.n }}',
    list: ['n=${{ input.list }}'],
    none: '[${{ input.missing }}]',
    flag: true,
    size: 3,
    plain: 'no $ {{ here }}',
    two: '${{input.n}}${{ "}}" }}',
  }
  t.strictSame(renderText(template, roots), {
    to: 'ann@x.org',
    count: '2',
    list: ['n=[1,2,3]'],
    none: '[]',
    flag: true,
    size: 3,
    plain: 'no $ {{ here }}',
    two: '2}}',
  })
  t.ok(hasTemplate(template.to))
  t.notOk(hasTemplate(template.plain))
})
t.test('templates for outputs keep the type of a single interpolation', async (t) => {
  t.strictSame(
    renderNative(
      {
        n: '${{ input.n }}',
        o: '${{ steps.fetch.output }}',
        text: 'n: ${{ input.n }}',
        none: '${{ input.missing }}',
      },
      roots,
    ),
    { n: 2, o: { total: 10, items: ['a', 'b'] }, text: 'n: 2', none: null },
  )
  t.strictSame(
    renderNative('${{ input.text }}', { input: { text: '${{ input.other }}' } }),
    '${{ input.other }}',
    'a result is not a template',
  )
  t.strictSame(
    renderNative(JSON.parse('{"__proto__": "${{ input.n }}"}'), roots),
    JSON.parse('{"__proto__": 2}'),
  )
})
t.test('template faults name the exact leaf', async (t) => {
  t.same(
    checkTemplate(
      { to: ['ok ${{ input.a }}', 'hi ${{ foo }}'], 'a b': '${{ 1 + }}', open: '${{ input.a' },
      names,
      'spec.steps[0].config.parameters',
    ).map(({ field, message }) => [field, message]),
    [
      [
        'spec.steps[0].config.parameters.to[1]',
        'there is no foo here; known: input, event, config, meta, steps (at character 8)',
      ],
      ['spec.steps[0].config.parameters["a b"]', 'Unexpected token: EOF (at character 9)'],
      [
        'spec.steps[0].config.parameters.open',
        'an interpolation that begins with ${{ is not closed by }}',
      ],
    ],
  )
  const nested = (depth: number): unknown => (depth === 0 ? 'literal' : [nested(depth - 1)])
  t.same(checkTemplate(nested(40), names, 'p'), [])
  t.match(checkTemplate(nested(200), names, 'p'), [{ message: /^is nested deeper than/ }])
  t.throws(() => renderText('${{ input.a', roots), ExpressionError)
  t.throws(
    () => renderText(Array(20).fill('${{ input.big }}'), { input: { big: 'x'.repeat(200_000) } }),
    { message: 'the result is too large' },
  )
})

t.test('a match compares the values at dotted paths', async (t) => {
  const document = {
    event: { order: { id: 7, tags: ['a'] }, kind: 'new', items: [{ sku: 'x' }] },
    meta: { run_id: 'r1', users: ['u1', 'u2'] },
  }
  for (const match of [
    {},
    { 'event.order.id': 7 },
    { 'order.id': 7 },
    { run_id: 'r1' },
    { 'meta.run_id': ['r0', 'r1'] },
    { kind: ['old', 'new'] },
    { 'order.tags': ['a'] },
    { 'items.0.sku': 'x' },
    { missing: null },
    { order: { id: 7, tags: ['a'] } },
  ])
    t.ok(matches(match, document), JSON.stringify(match))
  for (const match of [
    { 'order.id': '7' },
    { 'event.run_id': 'r1' },
    { 'order.id': 7, kind: 'old' },
    { kind: [] },
    { constructor: 'x' },
    { 'order.tags': 'a' },
    { 'kind.length': 3 },
  ])
    t.notOk(matches(match, document), JSON.stringify(match))
})

const piece = fc.constantFrom(
  'input',
  'steps',
  '.n',
  '.text',
  '["odd-name"]',
  '[0]',
  '1',
  '2.5',
  '"a"',
  "'}}'",
  '+',
  '-',
  '*',
  '/',
  '%',
  '==',
  '<',
  '&&',
  '||',
  '!',
  'and',
  'or',
  'not',
  'in',
  'contains',
  'matches',
  'startsWith',
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  '?',
  '${{',
  'len',
  'lower',
  'null',
  'true',
  ' ',
  'r"',
  '"',
  '\\',
  '//',
  'é',
)
t.test('any text either has a JSON value or throws an ExpressionError', async () => {
  const holds = (source: string) => {
    try {
      const value = evaluate(source, roots)
      if (JSON.stringify(JSON.parse(JSON.stringify(value))) !== JSON.stringify(value))
        throw new Error(`not JSON: ${source}`)
      compile(source, names)
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
    }
  }
  void fc.assert(
    fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => holds(pieces.join(' '))),
    { numRuns: 3000 },
  )
  void fc.assert(
    fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => holds(pieces.join(''))),
    { numRuns: 1000 },
  )
  void fc.assert(fc.property(fc.string({ unit: 'binary' }), holds), { numRuns: 1000 })
})
t.test('templates of literal texts yield those texts', async () => {
  const part = fc.record({
    text: fc.string().filter((text) => !text.includes('$')),
    wrapped: fc.boolean(),
  })
  void fc.assert(
    fc.property(fc.array(part), (parts) => {
      const template = parts
        .map(({ text, wrapped }) => (wrapped ? `\${{ ${JSON.stringify(text)} }}` : text))
        .join('')
      return renderText(template, {}) === parts.map(({ text }) => text).join('')
    }),
  )
  void fc.assert(
    fc.property(
      fc.jsonValue().filter((value) => !JSON.stringify(value).includes('${{')),
      (value) => JSON.stringify(renderText(value, {})) === JSON.stringify(value),
    ),
  )
})
const simplePattern = fc
  .array(
    fc.constantFrom(
      'a',
      'b',
      '.',
      '[ab]',
      '[^a]',
      '(a|b)',
      '(?:ab)',
      'a*',
      'b+',
      'a?',
      '(ab)*',
      'a{2}',
      'b{1,2}',
      '^',
      '$',
      '\\b',
      '|',
    ),
    { maxLength: 7 },
  )
  .map((parts) => parts.join(''))
t.test('patterns agree with JavaScript regular expressions where both are valid', async () => {
  void fc.assert(
    fc.property(
      simplePattern,
      fc.string({ unit: fc.constantFrom('a', 'b', ' ', 'c'), maxLength: 8 }),
      (pattern, text) =>
        evaluate('input.t matches input.p', { input: { t: text, p: pattern } }) ===
        new RegExp(pattern, 'u').test(text),
    ),
    { numRuns: 2000 },
  )
})

t.test('loop is an ordinary name, although the grammar reserves it', async (t) => {
  const known = [...names, 'loop']
  for (const [expression, value] of [
    ['loop.name', 'Notes'],
    ['loop["name"] + input.text', 'NotesHello'],
    ['{"loop": loop.name, a: input.loop}', { loop: 'Notes', a: null }],
  ] as const) {
    t.same(compile(expression, known), { ok: true }, expression)
    t.strictSame(evaluate(expression, { ...roots, loop: { name: 'Notes' } }), value)
  }
  t.match(compile('1 + loop.name', names), {
    ok: false,
    message: /^there is no loop here/,
    position: 4,
  })
})
