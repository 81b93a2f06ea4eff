/**
 * docs/contract.md names a test for every rule or marks the rule as open, and each named test
 * exists. The statements in README.md about clients, and the documented paths of device sign-in,
 * are also checked.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { unauthenticated } from '../protocol/access/unauthenticated-rows.ts'
import { api } from '../protocol/api.ts'
import type { Row } from '../protocol/contract.ts'

const root = join(import.meta.dirname, '..')
const text = readFileSync(join(root, 'docs/contract.md'), 'utf8')
/** Returns the titles of the tests that a file declares with a literal name. */
const titlesOf = (file: string): string[] =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/\btest\(\s*(['"`])(.+?)\1,/g)].map(
    ([, , title = '']) => title.replaceAll(/\\(.)/g, '$1'),
  )
const rules = [...text.matchAll(/^\| (R\d+) \| (.+?) \| (.+) \|$/gm)]

t.test('every rule from R1 to R20 is in the table once', async (t) => {
  t.strictSame(
    rules.map(([, name]) => name),
    Array.from({ length: 20 }, (_, index) => `R${index + 1}`),
  )
})

t.test('a rule names an existing test, or is marked as open', async (t) => {
  for (const [, name, , shown = ''] of rules) {
    const tests = [...shown.matchAll(/`([^`]+)` › (.+?)(?:; (?=`)|$)/g)]
    if (tests.length === 0) t.match(shown, /^\*\*open\*\*: .{10}/, String(name))
    for (const [, file = '', test = ''] of tests)
      t.ok(titlesOf(file).includes(test), `${name}: ${file} › ${test}`)
  }
})

t.test('the README and the rules name the same generations of published clients', async (t) => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  for (const statement of [
    'Published clients of the generation 0.0.61 work unchanged',
    'Clients of 0.1.0 do not',
  ]) {
    t.match(readme, statement)
    t.match(text, statement)
  }
})
t.test('the operations of device sign-in are served and described', async (t) => {
  const described = readFileSync(join(root, 'docs/command-line.md'), 'utf8')
  const operations: Readonly<Record<string, Pick<Row, 'route'>>> = { ...api, ...unauthenticated }
  const routes = Object.values(operations).map(({ route }) => route)
  for (const path of ['/auth/device/code', '/auth/device/token', '/auth/cli-credentials']) {
    t.match(described, path)
    t.ok(
      routes.some((route) => route.includes(path)),
      path,
    )
  }
})
