/** The reader of YAML and JSON handles malformed and hostile input within bounded time. */
import t from 'tap'
import { faultText } from '../../../../client/cli/blueprints/located.ts'
import { readDocuments, sourceOf, yamlLimits } from '../../../../client/cli/blueprints/yaml.ts'

const read = (text: string) => {
  const { documents, faults } = readDocuments(text, {
    source: sourceOf('x.yaml', text),
    env: {},
    file: () => ({ fault: 'is not read' }),
  })
  return { values: documents.map(({ value }) => value), faults: faults.map(faultText) }
}
const laughs = (levels: number): string =>
  [
    'a0: &a0 [x, x, x, x, x, x, x, x, x]',
    ...Array.from({ length: levels }, (_, at) => {
      const item = `*a${at}`
      return `a${at + 1}: &a${at + 1} [${Array.from({ length: 9 }, () => item).join(', ')}]`
    }),
  ].join('\n')

const cases: readonly (readonly [name: string, text: string, fault: RegExp])[] = [
  ['no YAML', 'a: b: c', /^x\.yaml:1:4: is not valid YAML: /],
  ['an unclosed quote', 'a: 1\nb: "x\n', /^x\.yaml:3:1: is not valid YAML: Missing closing/],
  [
    'a repeated name',
    'a: 1\nb: 2\n"a": 3',
    /^x\.yaml:3:1: a is already given in line 1, column 1$/,
  ],
  ['the prototype', 'a:\n  __proto__: {x: 1}', /^x\.yaml:2:3: is not allowed as a name$/],
  ['an unknown tag', 'a: !js/function x', /^x\.yaml:1:4: is not valid YAML: Unresolved tag/],
  ['a binary', 'a: !!binary aGk=', /^x\.yaml:1:4: is not valid YAML: Unresolved tag/],
  ['a file list', 'a: !file [x]', /^x\.yaml:1:4: is not valid YAML: /],
  ['a file', 'a: !file x', /^x\.yaml:1:10: is not read$/],
  ['infinity', 'a: [1, .inf]', /^x\.yaml:1:8: must be a finite number$/],
  ['a list as a name', '? [a]\n: 1', /^x\.yaml:1:3: /],
  ['an unknown anchor', 'a: *b', /^x\.yaml:1:4: /],
  [
    'an alias in its own anchor',
    'a: &b\n  c: *b',
    /^x\.yaml:2:6: is nested deeper than 64 levels$/,
  ],
  ['a billion laughs', laughs(9), /expands to more than the limits/],
  [
    'large aliases',
    `a: &a ${'x'.repeat(100_000)}\nb: [${'*a, '.repeat(1000)}]`,
    /expands to more than the limits/,
  ],
  ['deep brackets', '['.repeat(100_000), /^x\.yaml:1:65: is nested deeper than 64 levels$/],
  ['deep dashes', '- '.repeat(100_000), /^x\.yaml:1:\d+: is nested deeper than 64 levels$/],
  ['deep questions', '? '.repeat(100_000), /is nested deeper than 64 levels$/],
  [
    'deep indentation',
    Array.from({ length: 500 }, (_, level) => `${' '.repeat(level)}a:`).join('\n'),
    /^x\.yaml:\d+:\d+: is nested deeper than 64 levels$/,
  ],
  [
    'indentation below the bound of the tokens',
    Array.from({ length: 100 }, (_, level) => `${' '.repeat(level)}a:`).join('\n'),
    /^x\.yaml:\d+:\d+: is nested deeper than 64 levels$/,
  ],
  ['many errors', `[${',]['.repeat(20_000)}`, /is not valid YAML/],
  ['too many tokens', '- a\n'.repeat(300_000), /has more than 1000000 tokens/],
  ['too long', `# ${'x'.repeat(yamlLimits.text)}`, /has more than 4194304 characters/],
]
for (const [name, text, fault] of cases)
  t.test(name, async (t) => {
    const { faults } = read(text)
    t.match(faults[0], fault)
    t.ok(faults.length <= 20, 'the number of faults is bounded')
  })

t.test('many names of one object take no quadratic time', async (t) => {
  const text = Array.from({ length: 60_000 }, (_, at) => `k${at}: 1`).join('\n')
  t.strictSame(read(text).faults, [])
})

t.test('values that look like others stay what YAML 1.2 says', async (t) => {
  const text =
    '%YAML 1.1\n---\n{a: no, b: 0o17, c: 12e3, d: ~, 404: x, <<: {y: 1}, e: 2026-01-01}\n'
  t.strictSame(read(text).values, [
    { 404: 'x', a: 'no', b: 15, c: 12_000, d: null, '<<': { y: 1 }, e: '2026-01-01' },
  ])
})

t.test('aliases share values, and documents are separate', async (t) => {
  t.strictSame(read('a: &x {b: 1}\nc: *x\n---\n# nothing\n---\n[*y]').values, [
    { a: { b: 1 }, c: { b: 1 } },
    [null],
  ])
})
