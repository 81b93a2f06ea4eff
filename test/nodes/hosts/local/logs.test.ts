/** Log files: rotation, the end of a log, and files that are not logs. */
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { openLog, tailOf } from '../../../../nodes/hosts/local/logs.ts'
import { dataFolder } from './stage.ts'

const all = { tail: 1000, max_bytes: 100_000 }

t.test('a log keeps the newest bytes, at most twice its size', async (t) => {
  const path = join(dataFolder(t), 'out.log')
  const log = await openLog(path, 100)
  const lines = Array.from({ length: 200 }, (_, i) => `line ${i}\n`)
  await Promise.all(lines.map((line) => log.write(Buffer.from(line))))
  await log.close()
  t.ok(statSync(path).size + statSync(`${path}.1`).size <= 200)
  const kept = readFileSync(`${path}.1`, 'utf8') + readFileSync(path, 'utf8')
  t.ok(lines.join('').endsWith(kept))
  t.strictSame(await tailOf(path, all), { content: kept, truncated: false })
  t.strictSame(await tailOf(path, { tail: 2, max_bytes: 1000 }), {
    content: 'line 198\nline 199\n',
    truncated: true,
  })
})

t.test('a log continues after a restart', async (t) => {
  const path = join(dataFolder(t), 'out.log')
  for (const text of ['one\n', 'two\n']) {
    const log = await openLog(path)
    await log.write(Buffer.from(text))
    await log.close()
  }
  t.strictSame(await tailOf(path, all), { content: 'one\ntwo\n', truncated: false })
  t.equal(statSync(path).mode & 0o777, 0o600)
})

t.test('the end of a log is the end of its text', async (t) => {
  const path = join(dataFolder(t), 'out.log')
  const line = fc.string({ unit: fc.constantFrom('a', 'ö', '€', '😀', ' ') })
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 12 }),
      fc.boolean(),
      fc.integer({ min: 0, max: 40 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 0, max: 60 }),
      async (lines, ends, rotated, tail, max_bytes) => {
        const text = lines.join('\n') + (ends && lines.length > 0 ? '\n' : '')
        const bytes = Buffer.from(text)
        writeFileSync(`${path}.1`, bytes.subarray(0, rotated))
        writeFileSync(path, bytes.subarray(rotated))
        const { content, truncated } = await tailOf(path, { tail, max_bytes })
        if (!text.endsWith(content)) return false
        if (Buffer.byteLength(content) > max_bytes) return false
        if (content.split('\n').length - (content.endsWith('\n') ? 1 : 0) > tail) return false
        return truncated === (content !== text)
      },
    ),
    { numRuns: 300 },
  )
})

t.test('links, folders and missing files are no logs', async (t) => {
  const folder = dataFolder(t)
  writeFileSync(join(folder, 'secret'), 'secret')
  symlinkSync(join(folder, 'secret'), join(folder, 'link.log'))
  symlinkSync(folder, join(folder, 'other'))
  const nothing = { content: '', truncated: false }
  t.match(await tailOf(join(folder, 'secret'), all), { content: 'secret' })
  for (const name of ['link.log', 'other/secret', 'other', 'missing'])
    t.strictSame(await tailOf(join(folder, name), all), nothing, name)
})
