/**
 * Recognizes Office files (ECMA-376) by the names in the directory of their ZIP archive. Nothing is
 * decompressed here: executors convert the files (`nodes/executor/documents/`).
 */
import { unzipSync } from 'fflate'

const prefix = 'application/vnd.openxmlformats-officedocument.'
const kinds = [
  ['word/document.xml', `${prefix}wordprocessingml.document`],
  ['xl/workbook.xml', `${prefix}spreadsheetml.sheet`],
  ['ppt/presentation.xml', `${prefix}presentationml.presentation`],
] as const

/** The media types of Office files. */
export type OfficeType = (typeof kinds)[number][1]
/** Maximum number of members of an archive, and maximum total size in bytes that they announce. */
const ARCHIVE_LIMITS = { members: 5000, bytes: 64 * 1_048_576 } as const

class TooManyMembers extends Error {}

/**
 * Returns the media type of an Office file. Returns `unsafe` for an Office file with macros, and
 * for any archive that has more than 5,000 members or announces more than 64 MiB when decompressed.
 * Returns undefined for any other file.
 */
export function officeType(bytes: Uint8Array): OfficeType | 'unsafe' | undefined {
  const names = new Set<string>()
  let [count, total, macros] = [0, 0, false]
  try {
    unzipSync(bytes, {
      filter: ({ name, originalSize }) => {
        names.add(name)
        total += originalSize
        macros ||= /vbaProject\.bin$/i.test(name)
        // Repeated names count as well, because a hostile directory may announce up to 2^32
        // members.
        if (++count > ARCHIVE_LIMITS.members) throw new TooManyMembers()
        return false
      },
    })
  } catch (error) {
    return error instanceof TooManyMembers ? 'unsafe' : undefined
  }
  const kind = kinds.find(([main]) => names.has(main))
  if (total > ARCHIVE_LIMITS.bytes) return 'unsafe'
  if (!kind || !names.has('[Content_Types].xml')) return undefined
  return macros ? 'unsafe' : kind[1]
}
