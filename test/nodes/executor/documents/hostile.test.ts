/**
 * Hostile, damaged and large Office files: each conversion ends with a message or with Markdown,
 * within bounded time and memory, and does not block the thread of the caller.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import fc from 'fast-check'
import t from 'tap'
import { officeType } from '../../../../gateway/files/office.ts'
import { readParts } from '../../../../nodes/executor/documents/archive.ts'
import { markdownOf } from '../../../../nodes/executor/documents/convert.ts'
import { createConverter } from '../../../../nodes/executor/documents/converter.ts'
import { DocumentFault } from '../../../../nodes/executor/documents/fault.ts'
import { MAX_MARKDOWN } from '../../../../nodes/executor/documents/markdown.ts'
import { contentTypes, documentXml, docx, paragraph as p, zip } from './office.ts'

const later = (ms: number, run: () => void) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}
const MIB = 1_048_576
/** 65 MiB, which exceeds the maximum size of all parts of a file together. */
const bomb = Buffer.alloc(65 * MIB)
const document = (part: string | Uint8Array, how = {}) =>
  zip({ ...contentTypes, 'word/document.xml': part }, how)
/** Returns the message with which a conversion in this thread fails, or `converted`. */
const faultOf = (bytes: Uint8Array): Promise<string> =>
  markdownOf(bytes).then(
    () => 'converted',
    (error: unknown) => {
      if (!(error instanceof DocumentFault)) throw error
      return error.message
    },
  )

t.test('files that are refused, each with what to do', async (t) => {
  for (const [name, bytes, message] of [
    ['a compound file', Buffer.from('d0cf11e0a1b11ae10000', 'hex'), /password.*Save it/],
    ['no archive', Buffer.from('hello'), /not a DOCX, XLSX or PPTX/],
    ['an empty file', Buffer.alloc(0), /not a DOCX, XLSX or PPTX/],
    ['an archive of another kind', zip({ 'readme.txt': 'x' }), /not a DOCX, XLSX or PPTX/],
    ['a truncated archive', docx(p('x'.repeat(5000))).subarray(0, 300), /damaged/],
    ['an encrypted member', document(documentXml(p('x')), { encrypted: true }), /encrypted/],
    [
      'macros',
      zip({ ...contentTypes, 'word/document.xml': 'x', 'word/vbaProject.bin': 'x' }),
      /macros/,
    ],
    [
      '10,000 sheets',
      zip({
        ...contentTypes,
        'xl/workbook.xml': '<workbook/>',
        ...Object.fromEntries(
          Array.from({ length: 10_000 }, (_, n) => [`xl/worksheets/sheet${n}.xml`, '<a/>']),
        ),
      }),
      /5,000 parts.*split/,
    ],
    ['an announced bomb', document(bomb), /64 MiB.*split/],
    ['a large part', document(Buffer.alloc(33 * MIB, ' ')), /32 MiB.*Split/],
    ['a bomb that lies about its size', document(bomb, { lie: 100 }), /32 MiB.*Split/],
    [
      'entities',
      document(`<!DOCTYPE d [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>${documentXml(p('&b;'))}`),
      /document type declaration/,
    ],
    [
      'deep nesting',
      docx(`${'<w:p>'.repeat(10_000)}${'</w:p>'.repeat(10_000)}`),
      /nested more than 256/,
    ],
    ['ill-formed XML', docx('<w:p><w:t>a</w:p>'), /not well-formed.*Save it again/],
    [
      'an element with many attributes',
      docx(`<w:p ${Array.from({ length: 1001 }, (_, n) => `a${n}=""`).join(' ')}/>`),
      /more than 1000 attributes/,
    ],
    ['a table of many elements', docx(`<w:tbl>${'<w:x/>'.repeat(300_001)}</w:tbl>`), /too complex/],
    ['a paragraph of many comments', docx(`<w:p>${'<!---->'.repeat(9e5)}</w:p>`), /too complex/],
    ['a paragraph of 5 MiB', docx(p('>'.repeat(5 * MIB))), /too complex.*Split/],
    [
      'many styles',
      zip({
        ...contentTypes,
        'word/document.xml': documentXml(p('x')),
        'word/styles.xml': `<styles>${'<style a="1"/>'.repeat(225_001)}</styles>`,
      }),
      /too complex.*styles/,
    ],
    ['control characters', docx(p('\0'.repeat(1e6))), /not well-formed/],
    ['comments without an end', docx('<!--'.repeat(1e6)), /not well-formed/],
    ['tags without an end', docx('<'.repeat(2e5)), /not well-formed/],
    ['a document without a body', document('<w:document xmlns:w="w"/>'), /cannot be read/],
    ['no slides', zip({ ...contentTypes, 'ppt/presentation.xml': '<a/>' }), /no slides/],
  ] as const)
    t.match(await faultOf(bytes), message, name)
})

t.test('a member that is larger than it announces is not decompressed further', async (t) => {
  const chunks = zip({ a: Buffer.alloc(40 * MIB) }, { lie: 1 })
  t.throws(() => readParts(chunks, /^a$/), { message: /too large/ })
  t.equal(readParts(chunks, /^b$/).size, 0, 'members that are not needed are not decompressed')
  t.equal(readParts(zip({ a: Buffer.alloc(32 * MIB) }), /^a$/).get('a')?.length, 32 * MIB)
})

t.test('a long document is cut, and only its beginning is converted', async (t) => {
  const text = await markdownOf(docx(p('a'.repeat(1000)).repeat(2000)))
  t.match(text, /aaa\n\n\[The file is too long: the rest of its text was omitted\.\]$/)
  t.ok(text.length < MAX_MARKDOWN + 100)
  const empty = await markdownOf(docx('<w:p/>'.repeat(300_000) + p('end')))
  t.equal(empty.trim(), '[The file is too long: the rest of its text was omitted.]')
})

t.test('damaged archives are converted or refused', async () => {
  const whole = docx(p('x'))
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length), fc.uint8Array({ maxLength: 4 }), async (at, noise) => {
      const bytes = Buffer.concat([whole.subarray(0, at), noise, whole.subarray(at + noise.length)])
      officeType(bytes)
      await faultOf(bytes)
    }),
  )
})

t.test('in a thread: the deadline, the memory, and the caller', async (t) => {
  // The document is valid, so only the deadline or the heap limit can end its conversion.
  const slow = docx(p('x').repeat(30_000))
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  const late = await createConverter(later, { deadline: 500 }).convert(async () => slow)
  delay.disable()
  t.match(late, { error: /longer than 0.5 seconds.*Split/ })
  t.ok(delay.percentile(99) < 1e9, `the event loop stays free (${delay.percentile(99) / 1e6} ms)`)

  const heap = { maxOldGenerationSizeMb: 24, maxYoungGenerationSizeMb: 4 } as const
  const large = await createConverter(later, { heap }).convert(async () => slow)
  t.match(large, { error: /too much memory.*Split/ })

  const converter = createConverter(later)
  t.match(await converter.convert(async () => docx(p('ok'))), { markdown: 'ok' })
  t.equal(await converter.convert(async () => undefined), undefined)
  const gone = new AbortController()
  const aborted = converter.convert(async () => slow, gone.signal)
  setImmediate(() => gone.abort(new Error('lost')))
  await t.rejects(aborted, /lost/)
  await t.rejects(
    converter.convert(() => Promise.reject(new Error('down'))),
    /down/,
  )
  t.match(await converter.convert(async () => docx(p('again'))), { markdown: 'again' })
})
