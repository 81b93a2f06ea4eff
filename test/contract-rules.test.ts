/** docs/contract.md names a test for every rule, and each of these tests exists. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..')
const text = readFileSync(join(root, 'docs/contract.md'), 'utf8')
const rules = [...text.matchAll(/^\| (R\d+) \| (.+?) \| (.+) \|$/gm)]

t.test('every rule from R1 to R20 stands in the table once', async (t) => {
  t.strictSame(
    rules.map(([, name]) => name),
    Array.from({ length: 20 }, (_, index) => `R${index + 1}`),
  )
})

t.test('a rule names a test that exists, or says that it is open', async (t) => {
  for (const [, name, , shown = ''] of rules) {
    const [, file = '', test = ''] = /^`([^`]+)` › (.+)$/.exec(shown) ?? []
    if (file === '') t.match(shown, /^\*\*open\*\*: .{10}/, String(name))
    else t.ok(readFileSync(join(root, file), 'utf8').includes(test), `${name}: ${shown}`)
  }
})
