/**
 * Converts an Office file to Markdown in the calling thread. The conversion of a hostile file may
 * need a lot of time and memory, so it must run in a thread with limits (`converter.ts`).
 */
import { type OfficeType, officeType } from '../../../gateway/files/office.ts'
import { documentMarkdown } from './document.ts'
import { DocumentFault } from './fault.ts'
import { cutMarkdown } from './markdown.ts'
import { slidesMarkdown } from './slides.ts'
import { workbookMarkdown } from './workbook.ts'

const converters: Readonly<Record<OfficeType, (bytes: Uint8Array) => string | Promise<string>>> = {
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': documentMarkdown,
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': workbookMarkdown,
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': slidesMarkdown,
}

/** The Markdown of a file without text. */
const NO_TEXT = '[The file contains no text.]'
/** The first bytes of a compound file, which is an encrypted or a pre-2007 Office file. */
const COMPOUND = Buffer.from('d0cf11e0a1b11ae1', 'hex')

/**
 * Returns the Markdown of an Office file, whose type is determined by its bytes. The Markdown is
 * cut at a maximum length. A sentence at the end then states that text was left out.
 * @throws {DocumentFault} with advice when the file cannot be converted.
 */
export async function markdownOf(bytes: Uint8Array): Promise<string> {
  if (COMPOUND.equals(bytes.subarray(0, COMPOUND.length)))
    throw new DocumentFault(
      'The file is protected by a password, or has the format of Office before 2007. ' +
        'Save it without a password as DOCX, XLSX or PPTX, and upload it again.',
    )
  const type = officeType(bytes)
  if (type === undefined)
    throw new DocumentFault(
      'The file is not a DOCX, XLSX or PPTX file, or it is damaged. ' +
        'Save it again in one of these formats, and upload it again.',
    )
  if (type === 'unsafe')
    throw new DocumentFault(
      'The file is not safe to open: it contains macros, more than 5,000 parts, or more than ' +
        '64 MiB when it is unpacked. Save it without macros, or split it, and upload it again.',
    )
  return cutMarkdown(await converters[type](bytes)) || NO_TEXT
}
