/** ZIP archives and their parts, for tests of the conversion of Office files. */

import { deflateRawSync } from 'node:zlib'
import { markdownOf } from '../../../gateway/files/office.ts'
import { type Archive, openArchive } from '../../../gateway/files/zip.ts'

/**
 * Creates a ZIP archive as other programs do.
 * @param members the texts of the members, by name.
 * @param lie the uncompressed size that the directory states for every member; absent: the true
 * sizes.
 * @param stored whether the members are not compressed.
 */
export function zip(
  members: Readonly<Record<string, string>>,
  lie?: number,
  stored = false,
): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const [name, text] of Object.entries(members)) {
    const title = Buffer.from(name)
    const packed = stored ? Buffer.from(text) : deflateRawSync(text)
    const local = Buffer.alloc(30)
    local.write('PK\x03\x04', 'latin1')
    local.writeUInt16LE(title.length, 26)
    const entry = Buffer.alloc(46)
    entry.write('PK\x01\x02', 'latin1')
    entry.writeUInt16LE(stored ? 0 : 8, 10)
    entry.writeUInt32LE(packed.length, 20)
    entry.writeUInt32LE(lie ?? Buffer.byteLength(text), 24)
    entry.writeUInt16LE(title.length, 28)
    entry.writeUInt32LE(at, 42)
    parts.push(local, title, packed)
    directory.push(entry, title)
    at += 30 + title.length + packed.length
  }
  const whole = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(Object.keys(members).length, 10)
  end.writeUInt32LE(whole.length, 12)
  end.writeUInt32LE(at, 16)
  return Buffer.concat([...parts, whole, end])
}

/** The member that every Office file has. */
export const contentTypes = { '[Content_Types].xml': '<Types/>' }
/** The Markdown of a file with these members. */
export const markdownFrom = async (members: Readonly<Record<string, string>>) =>
  markdownOf(openArchive(zip({ ...contentTypes, ...members })) as Archive)
/** A paragraph of a text document. */
export const paragraph = (text: string, style = ''): string =>
  `<w:p>${style === '' ? '' : `<w:pPr>${style}</w:pPr>`}<w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`
