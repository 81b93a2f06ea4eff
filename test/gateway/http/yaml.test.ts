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
  const members = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`k${i}`, i]))
  const line = JSON.stringify(members)
  t.strictSame(read(line), { value: members }, 'a map in one line is one level')
  t.strictSame(read(`- ${line.replaceAll('"', '').replaceAll(':', ': ')}`), { value: [members] })
})

t.test('length and nesting are limited before the parser runs', async (t) => {
  const nested = { fault: 'is nested deeper than 64 levels' }
  t.match(readYaml('a: b', 3), { fault: 'has more than 3 characters' })
  for (const text of ['[', '{', '- ', '? ', '[{', '[ # ]\n', "[']',", '{a: ', 'a: [\n- '])
    t.strictSame(read(text.repeat(Math.floor(240_000 / text.length))), nested, text)
  for (const text of ['[: ', '[? ', '[- ', '{a, : '])
    t.strictSame(read(text + text.slice(-2).repeat(100_000)), nested, `${text} in one collection`)
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

t.test('repeated keys and errors are reported with their place', async (t) => {
  t.strictSame(read('a: 1\nb: {c: 1, d: 2, c: 3}\n'), {
    fault: 'is not YAML: Map keys must be unique at line 2, column 17',
  })
  t.strictSame(read('1: a\n"1": b\nnull: c\n[a]: d\n'), {
    value: { 1: 'b', '': 'c', '[ a ]': 'd' },
  })
  t.strictSame(read('# text\n"b" "c" "d"\n'), {
    fault: 'is not YAML: Unexpected double-quoted-scalar at node end at line 2, column 5',
  })
})

t.test('the time of a document is linear, whatever it contains', async (t) => {
  t.strictSame(read('"'.repeat(250_000)), { fault: 'has more than 100000 tokens' })
  const cost = (text: string): number => {
    const before = process.cpuUsage()
    read(text)
    return process.cpuUsage(before).user
  }
  const ordinary = '- a: b\n'.repeat(6000)
  cost(ordinary)
  const most = 8 * cost(ordinary)
  t.ok(cost('"'.repeat(120_000)) < most, 'many errors')
  const keys = Array.from({ length: 16_000 }, (_, n) => `${n.toString(36)}:\n`).join('')
  t.ok(cost(keys) < most, 'many keys')
})
