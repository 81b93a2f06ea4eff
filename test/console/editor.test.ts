/** How the editor analyzes texts: positions of faults, suggestions, and conversions. */
import fc from 'fast-check'
import t from 'tap'
import { contextAt } from '../../console/editor/context.ts'
import { faultsBelow, faultsOfText } from '../../console/editor/faults.ts'
import { converted, keysOf, type Language, locate } from '../../console/editor/located.ts'
import { type Schema, suggest } from '../../console/editor/suggestions.ts'
import { checkWorkflow } from '../../console/pages/build/checks.ts'
import { Spec } from '../../protocol/workflows/spec.ts'

const JSON_TEXT = `{
  "steps": [
    {"id": "a", "kind": "sleep", "config": {"duration": "1s"}},
    {"id": "b", "kind": "action", "config": {"action_name": "x"}}
  ],
  "a b": 1
}`
const YAML_TEXT = `steps:
  - id: a
    kind: sleep
    config:
      duration: 1s
  - id: b
    kind: action
    config: {action_name: x}
a b: 1
`
const at = (text: string, language: Language, path: string): string => {
  const read = locate(text, language)
  if (!('value' in read)) return `fault: ${read.fault.message}`
  const { from, to } = read.rangeOf(path)
  return text.slice(from, to)
}

t.test('a fault is shown at its member, or at the nearest one around it', async (t) => {
  t.strictSame(keysOf('steps[0].config["a b"].x'), ['steps', '0', 'config', 'a b', 'x'])
  t.strictSame(keysOf('steps.0.key'), ['steps', '0', 'key'])
  for (const [path, inJson, inYaml] of [
    ['steps[0].config.duration', '"1s"', '1s'],
    ['steps[1].config.action_name', '"x"', 'x'],
    ['steps[1].config', '"config"', 'config'],
    ['steps[0].config.until', '"config"', 'config'],
    ['steps[1]', '{', 'i'],
    ['["a b"]', '1', '1'],
    ['', '{', 's'],
  ] as const) {
    t.equal(at(JSON_TEXT, 'json', path), inJson, path)
    t.equal(at(YAML_TEXT, 'yaml', path), inYaml, path)
  }
})

t.test('faults of the syntax have a place, and stop the check', async (t) => {
  const unchecked = () => {
    t.fail('checked')
    return []
  }
  const [json] = faultsOfText('{"a": }', 'json', unchecked)
  t.equal(json?.from, 6)
  t.not(json?.message, '')
  const [yaml] = faultsOfText('a: [1,', 'yaml', unchecked)
  t.ok(yaml)
  const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
  t.match(faultsOfText(deep, 'yaml', undefined)[0]?.message, /nested deeper/)
  const bomb = `a: &a [${'1,'.repeat(50)}]\nb: &b [${'*a,'.repeat(50)}]\nc: [${'*b,'.repeat(50)}]`
  t.match(faultsOfText(bomb, 'yaml', undefined)[0]?.message, /aliases/)
})

t.test('a definition of white space or comments is a fault within the text', async (t) => {
  for (const text of [
    '',
    ' ',
    '\n\n',
    '\t',
    '# only a comment',
    '---',
    '--- # c\n',
    '...',
    '\ufeff',
  ]) {
    const [fault] = faultsOfText(text, 'yaml', checkWorkflow)
    t.match(fault, { message: 'must be an object' }, JSON.stringify(text))
    t.ok(fault && fault.from <= fault.to && fault.to <= text.length, JSON.stringify(text))
  }
  t.match(faultsOfText(' \n', 'json', checkWorkflow), [{ message: 'must be an object' }])
  t.strictSame(faultsOfText(' \n', 'json', undefined), [])
})

t.test('faults of the service are shown once, below their root', async (t) => {
  const check = () => [{ field: 'steps[0].id', message: 'is twice' }]
  const given = faultsBelow(
    [
      { field: 'spec.steps[0].id', message: 'is twice' },
      { field: 'spec', message: 'is too large' },
      { field: 'name', message: 'is required' },
      { field: 'special', message: 'is not known' },
    ],
    'spec',
  )
  const found = faultsOfText(JSON_TEXT, 'json', check, given)
  t.strictSame(
    found.map(({ field, message, from, to }) => [field, message, JSON_TEXT.slice(from, to)]),
    [
      ['steps[0].id', 'is twice', '"a"'],
      ['', 'is too large', '{'],
    ],
  )
})

/** Returns the suggestions at the position that `|` marks in a text. */
function suggested(marked: string, language: Language): string[] {
  const position = marked.indexOf('|')
  const found = contextAt(marked.replace('|', ''), position, language)
  return found ? suggest(Spec as unknown as Schema, found).map(({ value }) => value) : []
}

t.test('names and values are suggested where they fit', async (t) => {
  t.ok(suggested('{|}', 'json').includes('steps'))
  t.notOk(suggested('{"steps": [], "|', 'json').includes('steps'))
  t.strictSame(suggested('{"steps": [{"kind": "sleep", "config": {"|', 'json'), [
    'duration',
    'until',
  ])
  t.strictSame(suggested('{"steps": [{"config": {"|"}, "kind": "sleep"}]}', 'json'), [
    'duration',
    'until',
  ])
  t.ok(suggested('{"steps": [{"id": "x", "kind": "|"}]}', 'json').includes('"action"'))
  t.strictSame(
    suggested('{"steps": [{"kind": "action", "timeout": {"on_timeout": |', 'json').sort(),
    ['"continue"', '"fail"'],
  )
  t.ok(suggested('st|', 'yaml').includes('steps'))
  t.ok(suggested('steps:\n  - kind: |', 'yaml').includes('"parallel"'))
  t.strictSame(suggested('steps:\n  - kind: sleep\n    config:\n      du|', 'yaml'), [
    'duration',
    'until',
  ])
  t.strictSame(suggested('steps:\n- config:\n    |\n  kind: sleep\n', 'yaml'), [
    'duration',
    'until',
  ])
  t.ok(suggested('steps:\n  - id: a\n    ki|\n', 'yaml').includes('kind'))
  t.notOk(suggested('steps:\n  - id: a\n    ki|\n', 'yaml').includes('id'))
  t.ok(suggested('steps: []\nli|', 'yaml').includes('limits'))
  t.strictSame(suggested('limits:\n  # |', 'yaml').includes('steps'), false)
  t.strictSame(
    suggested('steps:\n  - kind: agent\n    config:\n      instructions: |\n        ki', 'json'),
    [],
  )
})

t.test('a text is converted without loss', async (t) => {
  t.strictSame(JSON.parse(converted(YAML_TEXT, 'yaml', 'json') ?? ''), JSON.parse(JSON_TEXT))
  t.equal(converted('{', 'json', 'yaml'), undefined)
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const json = JSON.stringify(value)
      const yaml = converted(json, 'json', 'yaml') ?? ''
      t.strictSame(JSON.parse(converted(yaml, 'yaml', 'json') ?? ''), JSON.parse(json))
    }),
    { numRuns: 50 },
  )
})

t.test('any text has a context without an exception', async () => {
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ':',
    ',',
    '"',
    'a',
    ' ',
    '\n',
    '- ',
    '\\',
    '#',
    '|',
    "'",
    'a: ',
  ]
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...pieces), { maxLength: 30 }),
      fc.nat(60),
      fc.constantFrom<Language>('json', 'yaml'),
      (parts, position, language) => {
        const text = parts.join('')
        const found = contextAt(text, Math.min(position, text.length), language)
        if (found) suggest(Spec as unknown as Schema, found)
        faultsOfText(text, language, () => [{ field: 'a[0].b', message: 'x' }])
      },
    ),
    { numRuns: 300 },
  )
})
