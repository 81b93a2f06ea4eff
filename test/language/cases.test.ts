/**
 * Every story in `cases/` must produce the timeline that it states. `LANGUAGE=accept` rewrites the
 * stories from the current behavior: review the difference before you commit it.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { tell } from './story.ts'

const root = join(import.meta.dirname, 'cases')
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.txt'))
  .sort()

t.test('there are at least 120 stories', async (t) => {
  t.ok(files.length >= 120, `${files.length} stories`)
})
t.test('stories', async (t) => {
  for (const file of files) {
    const path = join(root, file)
    const text = readFileSync(path, 'utf8')
    const told = tell(text)
    if (process.env['LANGUAGE'] === 'accept' && told !== text) writeFileSync(path, told)
    else t.equal(told, text, file)
  }
})
