/** YAML from users: accepted documents, and documents made to exhaust the parser. */
import t from 'tap'
import { readYaml } from '../../../gateway/files/yaml.ts'

const read = (text: string) => readYaml(text, 262_144)

t.test('ordinary documents are parsed', async (t) => {
  t.strictSame(read('name: a\ntags: [x, y]\nnested:\n  - - 1\n    - {b: "[[["}\n'), {
    value: { name: 'a', tags: ['x', 'y'], nested: [[1, { b: '[[[' }]] },
  })
  t.strictSame(read(''), { value: null })
  t.match(read('a: ['), { fault: /^is not YAML: / })
  t.strictSame(read(`${'[ '.repeat(60)}${'] '.repeat(60)}`), {
    value: JSON.parse(`${'['.repeat(60)}${']'.repeat(60)}`),
  })
  t.match(
    read(`- text: ${'a - b ? c [ d '.repeat(500)}`),
    { value: [{}] },
    'plain text nests nothing',
  )
})

t.test('length and nesting are limited before the parser runs', async (t) => {
  const nested = { fault: 'is nested deeper than 64 levels' }
  t.match(readYaml('a: b', 3), { fault: 'has more than 3 characters' })
  for (const text of ['[', '{', '- ', '? ', '[{', '[ # ]\n', "[']',", '{a: '])
    t.strictSame(read(text.repeat(Math.floor(240_000 / text.length))), nested, text)
  const stairs = Array.from({ length: 700 }, (_, depth) => `${' '.repeat(depth)}a:\n`).join('')
  t.match(read(stairs), { fault: /./ })
  const laughs = `a: &a [x,x,x,x,x,x,x,x]\n${'bcdefghi'
    .split('')
    .map((name, i) => `${name}: &${name} [${Array(8).fill(`*${'abcdefgh'[i]}`).join(',')}]\n`)
    .join('')}`
  t.strictSame(read(laughs), { fault: 'expands too many aliases' })
  for (const text of ['a: &a [*a]', '&a {b: {c: *a}}', 'a: &a\n  - b: [*a]'])
    t.strictSame(read(text), { fault: 'has an alias inside its own anchor' }, text)
  t.match(
    read('a: &a [1]\nb: [*a, *a]'),
    { value: { b: [[1], [1]] } },
    'a sibling alias is allowed',
  )
})
