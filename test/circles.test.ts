/**
 * Value imports between modules of the program form no cycles. Type imports and dynamic imports do
 * not count.
 */
import t from 'tap'
import { importCyclesOf } from './support/structure/import-cycles.ts'
import { readSources } from './support/structure/sources.ts'

t.test('no value imports form a cycle', async (t) => {
  for (const { files, edges } of importCyclesOf(readSources()))
    t.strictSame(edges, [], `a cycle of ${files.length} files`)
})

t.test('a planted cycle is found', async (t) => {
  const found = importCyclesOf(
    new Map([
      ['a/start.ts', `import { two } from './two.ts'\nimport { apart } from '../b/apart.ts'`],
      ['a/two.ts', `import { type Apart, three } from '../b/three.ts'`],
      ['b/three.ts', `export { two } from '../a/two.ts'\nimport '../a/two.ts'`],
      ['b/apart.ts', `import { three } from './three.ts'`],
      ['b/self.ts', `import * as self from './self.ts'`],
    ]),
  )
  t.strictSame(found, [
    {
      files: ['a/two.ts', 'b/three.ts'],
      edges: ['a/two.ts -> b/three.ts', 'b/three.ts -> a/two.ts'],
    },
    { files: ['b/self.ts'], edges: ['b/self.ts -> b/self.ts'] },
  ])
})

t.test('imports of types and dynamic imports form no cycle', async (t) => {
  const back = [
    `import type { One } from './one.ts'`,
    `import { type One, type Other } from './one.ts'`,
    `export type { One } from './one.ts'`,
    `export { type One } from './one.ts'`,
    `const one = () => import('./one.ts')`,
    `import { one } from 'one.ts'`,
    `import { one } from './elsewhere.ts'`,
  ]
  for (const line of back)
    t.strictSame(
      importCyclesOf(
        new Map([
          ['one.ts', `import { two } from './two.ts'`],
          ['two.ts', line],
        ]),
      ),
      [],
      line,
    )
})
