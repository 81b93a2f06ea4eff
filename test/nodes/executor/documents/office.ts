/** Office files and ZIP archives for tests. */
import { deflateRawSync } from 'node:zlib'
import { markdownOf } from '../../../../nodes/executor/documents/convert.ts'

interface Writing {
  /** The uncompressed size that the headers state for every member; by default the true size. */
  readonly lie?: number
  /** Whether the members are stored without compression. */
  readonly stored?: boolean
  /**
   * Whether the sizes follow the content of each member, as written by programs that do not know
   * them in advance.
   */
  readonly streamed?: boolean
  /** Whether the headers mark the members as encrypted. */
  readonly encrypted?: boolean
}

/** Creates a ZIP archive. `members` contains the content of each member by its name. */
export function zip(
  members: Readonly<Record<string, string | Uint8Array>>,
  { lie, stored = false, streamed = false, encrypted = false }: Writing = {},
): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  const flags = (encrypted ? 1 : 0) | (streamed ? 8 : 0)
  let at = 0
  for (const [name, content] of Object.entries(members)) {
    const [title, bytes] = [Buffer.from(name), Buffer.from(content as string)]
    const packed = stored ? bytes : deflateRawSync(bytes)
    if (encrypted) for (const [index, byte] of packed.entries()) packed[index] = byte ^ 0x5a
    const facts = Buffer.alloc(20)
    facts.writeUInt16LE(flags, 0)
    facts.writeUInt16LE(stored ? 0 : 8, 2)
    facts.writeUInt32LE(packed.length, 12)
    facts.writeUInt32LE(lie ?? bytes.length, 16)
    const local = Buffer.alloc(30)
    local.write('PK\x03\x04', 'latin1')
    facts.copy(local, 6, 0, streamed ? 12 : 20)
    local.writeUInt16LE(title.length, 26)
    const entry = Buffer.alloc(46)
    entry.write('PK\x01\x02', 'latin1')
    facts.copy(entry, 8)
    entry.writeUInt16LE(title.length, 28)
    entry.writeUInt32LE(at, 42)
    const after = Buffer.alloc(streamed ? 16 : 0)
    if (streamed) {
      after.write('PK\x07\x08', 'latin1')
      facts.copy(after, 8, 12)
    }
    parts.push(local, title, packed, after)
    directory.push(entry, title)
    at += 30 + title.length + packed.length + after.length
  }
  const whole = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(Object.keys(members).length, 8)
  end.writeUInt16LE(Object.keys(members).length, 10)
  end.writeUInt32LE(whole.length, 12)
  end.writeUInt32LE(at, 16)
  return Buffer.concat([...parts, whole, end])
}

/** The member that every Office file has. */
export const contentTypes = {
  '[Content_Types].xml':
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
}
export const markdownFrom = (members: Readonly<Record<string, string>>): Promise<string> =>
  markdownOf(zip({ ...contentTypes, ...members }))

const TYPES = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
export const documentXml = (body: string): string =>
  `<w:document xmlns:w="${WORD}" xmlns:r="${TYPES}"><w:body>${body}</w:body></w:document>`
export const WORD = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main'
export const docx = (body: string): Buffer =>
  zip({ ...contentTypes, 'word/document.xml': documentXml(body) })
export const paragraph = (text: string, style = ''): string =>
  `<w:p>${style === '' ? '' : `<w:pPr>${style}</w:pPr>`}` +
  `<w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`
/**
 * Returns the relationships of a part as XML. Each has an id, the last segment of its type, and a
 * target.
 */
export const relationships = (...all: readonly (readonly [string, string, string])[]): string =>
  `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${all
    .map(
      ([id, type, target]) =>
        `<Relationship Id="${id}" Type="${TYPES}/${type}" Target="${target}"` +
        `${target.startsWith('https:') ? ' TargetMode="External"' : ''}/>`,
    )
    .join('')}</Relationships>`
