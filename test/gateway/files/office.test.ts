/** Recognition of Office files by their bytes, and refusal of files that are not safe to open. */
import t from 'tap'
import { inspect } from '../../../gateway/files/file.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { contentTypes as types, zip } from '../../nodes/executor/documents/office.ts'

t.test('the kind of an archive is detected, and its conversion begins', async (t) => {
  const kind = async (bytes: Buffer) => {
    const found = await inspect(bytes, 'a.docx', undefined)
    return isRefusal(found)
      ? found.refused
      : [found.facts.mime_type.split('.').at(-2), found.facts.conversion?.state]
  }
  const main = { ...types, 'word/document.xml': '<a/>' }
  t.same(await kind(zip(main)), ['wordprocessingml', 'converting'])
  t.same(await kind(zip({ ...types, 'xl/workbook.xml': '<a/>' })), ['spreadsheetml', 'converting'])
  t.same(await kind(zip({ ...types, 'ppt/presentation.xml': '<a/>' })), [
    'presentationml',
    'converting',
  ])
  t.equal(await kind(zip({ ...main, 'word/vbaProject.bin': 'x' })), 'payload_too_large')
  t.equal(await kind(zip(main, { lie: 100_000_000 })), 'payload_too_large')
  const parts = Array.from({ length: 5001 }, (_, n) => [`word/${n}.xml`, ''] as const)
  t.equal(await kind(zip({ ...main, ...Object.fromEntries(parts) })), 'payload_too_large')
  // ZIP64 records that announce 2^32 - 1 members, and the end-of-central-directory record.
  const many = Buffer.concat([zip(main).subarray(0, -22), Buffer.alloc(98)])
  const end = many.length - 22
  many.write('PK\x06\x06', end - 76, 'latin1')
  many.writeUInt32LE(0xffffffff, end - 76 + 32)
  many.write('PK\x06\x07', end - 20, 'latin1')
  many.writeUInt32LE(end - 76, end - 12)
  many.write('PK\x05\x06', end, 'latin1')
  many.writeUInt16LE(0xffff, end + 8)
  t.equal(await kind(many), 'payload_too_large')
  t.equal(await kind(zip({ 'word/document.xml': '<a/>' })), 'bad_request')
  t.equal(await kind(zip({ 'readme.txt': 'x' })), 'bad_request')
  t.equal(await kind(zip(main).subarray(0, 60)), 'bad_request')
})
