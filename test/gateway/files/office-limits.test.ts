/**
 * Limits of the conversion of Office files: the work for large, damaged and hostile content is
 * bounded.
 */
import fc from 'fast-check'
import t from 'tap'
import { markdownOf } from '../../../gateway/files/office.ts'
import { openArchive } from '../../../gateway/files/zip.ts'
import {
  paragraph as p,
  markdownFrom as said,
  contentTypes as types,
  zip,
} from './office-archives.ts'

t.test('the work for a document is bounded', async (t) => {
  const MOST = 262_144
  const lengthOf = async (xml: string) => (await said({ 'word/document.xml': xml }))?.length ?? 0
  t.equal(await lengthOf(`${'<w:p>'.repeat(300)}${p('a')}`), 1, 'in the first chunk')
  t.equal(await lengthOf(`${'<w:p>'.repeat(10_000)}${p('a')}`), 0, 'nested too deeply')
  t.equal(await lengthOf(`<w:p ${'a=""'.repeat(10_000)}>${p('a')}</w:p>`), 0, 'many attributes')
  t.equal(await lengthOf(`${'<w:p/>'.repeat(399_000)}${p('a')}`), 1)
  t.equal(await lengthOf(`${'<w:p/>'.repeat(401_000)}${p('a')}`), 0, 'many tags')
  t.equal(await lengthOf(p('a'.repeat(1000)).repeat(500)), MOST + '\n\n[cut off here]'.length)
  const cells = '<w:tc></w:tc>'
  t.equal(
    await lengthOf(
      `<w:tbl><w:tr>${cells.repeat(50_000)}</w:tr>${'<w:tr></w:tr>'.repeat(50_000)}</w:tbl>`,
    ),
    MOST + '\n\n[cut off here]'.length,
    'a table with many columns and many rows',
  )
  t.equal(await lengthOf(`<w:tbl>${'<w:tr></w:tr>'.repeat(150_000)}</w:tbl>`), 0)
  t.equal(
    (
      await said({
        'xl/workbook.xml': '<workbook/>',
        'xl/worksheets/sheet1.xml': '<row><c r="GR1"><v>x</v></c></row>'.repeat(50_000),
      })
    )?.length,
    MOST + '\n\n[cut off here]'.length,
    'a sheet with many columns and many rows',
  )
})

t.test('damaged and hostile content costs bounded time and throws nothing', async () => {
  const whole = zip({ ...types, 'word/document.xml': p('x') })
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length), fc.uint8Array({ maxLength: 4 }), async (at, noise) => {
      const bytes = Buffer.concat([whole.subarray(0, at), noise, whole.subarray(at + noise.length)])
      const archive = openArchive(bytes)
      if (archive && archive !== 'unsafe') await markdownOf(archive)
    }),
  )
  for (const trap of [
    '<'.repeat(2e5),
    `<${'a'.repeat(2e5)}<`,
    `<a ${'b="'.repeat(1e5)}<`,
    `<w:t>${' '.repeat(2e5)}x</w:t>`,
    '&'.repeat(2e5),
    '&lt;'.repeat(2e6),
    '\0'.repeat(1e6),
    '\r'.repeat(1e6),
    '<!--'.repeat(1e6),
    '<![CDATA['.repeat(1e6),
    `${'<a>'.repeat(250)}${'</b>'.repeat(1e6)}`,
    `<a ${Array.from({ length: 1e5 }, (_, n) => `a${n}=""`).join(' ')}>`,
    `<w:tbl>${'<w:tr>'.repeat(5e4)}`,
  ]) {
    const before = process.cpuUsage().user
    await said({ 'word/document.xml': `<w:p><w:t>${trap}</w:t></w:p>` })
    await said({
      'xl/workbook.xml': trap,
      'xl/worksheets/sheet1.xml': `<row><c><v>${trap}</v></c></row>`,
    })
    const ms = (process.cpuUsage().user - before) / 1000
    if (ms > 3000) throw new Error(`${trap.slice(0, 20)} took ${ms} ms`)
  }
})
