/**
 * Counts the pages of a PDF (ISO 32000-1, 7.5.7 and 7.7.3): the objects of type Page, in the file
 * itself and in its object streams. The rest of the file is not validated.
 */
import { promisify } from 'node:util'
import { inflate } from 'node:zlib'

const unzip = promisify(inflate)
/** Maximum total size in bytes of the decompressed object streams of one file. */
const MAX_UNPACKED_BYTES = 32 * 1_048_576

const pagesIn = (text: string): number => text.match(/\/Type\s*\/Page(?![A-Za-z])/g)?.length ?? 0

/** Returns the number of pages, or `unreadable`, for example for an encrypted file. */
export async function pagesOf(bytes: Buffer): Promise<number | 'unreadable'> {
  const text = bytes.toString('latin1')
  if (/\/Encrypt\s+\d+\s+\d+\s+R/.test(text)) return 'unreadable'
  let pages = 0
  let left = MAX_UNPACKED_BYTES
  let at = 0
  for (const found of text.matchAll(/\bstream\r?\n/g)) {
    const begin = found.index + found[0].length
    if (found.index < at) continue
    const between = text.slice(at, found.index)
    const head = between.slice(between.lastIndexOf(' obj') + 1)
    const end = text.indexOf('endstream', begin)
    if (end < 0) break
    // Only the objects between streams are counted here, not the content of streams.
    pages += pagesIn(between)
    at = end + 'endstream'.length
    if (!/\/Type\s*\/ObjStm\b/.test(head)) continue
    const packed = bytes.subarray(begin, end)
    const content = /\/FlateDecode\b/.test(head)
      ? await unzip(packed, { maxOutputLength: Math.max(1, left), finishFlush: 2 }).catch(
          () => undefined,
        )
      : packed
    if (!content) return 'unreadable'
    left -= content.length
    pages += pagesIn(content.toString('latin1'))
  }
  pages += pagesIn(text.slice(at))
  return pages === 0 ? 'unreadable' : pages
}
