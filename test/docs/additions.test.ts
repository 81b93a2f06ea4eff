/** The table of docs/contract.md: all names that the parameter `include` accepts, by operation. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { api } from '../../protocol/api.ts'
import type { Row } from '../../protocol/contract.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/contract.md'), 'utf8')
const codeIn = (text = ''): string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)

t.test('the table of additional members agrees with the operations', async (t) => {
  const [, after = ''] = page.split('| record | operations | names in `include` |\n')
  const [table = ''] = after.split('\n\n')
  const documented = table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, , operations, names] = line.split('|')
      return codeIn(operations).map((name) => [name, codeIn(names)] as const)
    })
  const actual = Object.entries(api as Readonly<Record<string, Row>>).flatMap(([name, row]) =>
    row.shape.additions && row.shape.tag !== 'compat'
      ? [[name, Object.keys(row.shape.additions)] as const]
      : [],
  )
  t.ok(actual.length > 30)
  t.strictSame(new Map(documented), new Map(actual))
})
