/** The list of benchmarks comes from the text of their files, and must not depend on formatting. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { benchmarks } from '../../../nodes/commands/bench.ts'

t.test('every file that exports a description is listed', async (t) => {
  const folder = new URL('../../../bench/', import.meta.url)
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .filter((name) => readFileSync(new URL(name, folder), 'utf8').includes('export const about'))
    .map((name) => name.slice(0, -'.ts'.length))
    .sort()
  t.ok(files.length > 10)
  t.strictSame([...benchmarks().keys()].sort(), files)
})
