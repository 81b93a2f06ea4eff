/**
 * Reads ZIP archives (APPNOTE.TXT of PKWARE, 4.3): lists their members and decompresses individual
 * members within limits. An archive that is encrypted or too large when decompressed is not opened.
 * zlib is used instead of `fflate`, which runs on the event loop and does not stop at the announced
 * size. A member of 1 MiB that announces 100 bytes but decompresses to 1 GiB blocks the event loop
 * for 3 s with `fflate`; zlib stops at once.
 */
import { promisify } from 'node:util'
import { inflateRaw } from 'node:zlib'

const unpack = promisify(inflateRaw)
/**
 * Maximum number of members, maximum decompressed size of all members in bytes, and maximum
 * decompressed size of one member in bytes.
 */
const ZIP_LIMITS = { members: 5000, bytes: 64 * 1_048_576, text: 16 * 1_048_576 } as const

interface Member {
  readonly packed: boolean
  readonly from: number
  readonly size: number
  /** The decompressed size in bytes that the archive's directory announces. */
  readonly unpacked: number
}
export interface Archive {
  readonly names: readonly string[]
  /** The text of a member. Undefined when it is missing, damaged, or larger than 16 MiB. */
  text(name: string): Promise<string | undefined>
}

/**
 * Opens an archive. Returns `unsafe` when it is encrypted, has too many members, or is too large
 * when decompressed, and undefined when it is damaged or not an archive.
 */
export function openArchive(bytes: Buffer): Archive | 'unsafe' | undefined {
  const end = bytes.lastIndexOf('PK\x05\x06', undefined, 'latin1')
  if (end < 0 || end + 22 > bytes.length) return undefined
  const count = bytes.readUInt16LE(end + 10)
  if (count > ZIP_LIMITS.members) return 'unsafe'
  const members = new Map<string, Member>()
  let [at, total] = [bytes.readUInt32LE(end + 16), 0]
  for (let n = 0; n < count; n++) {
    if (at + 46 > end || bytes.toString('latin1', at, at + 4) !== 'PK\x01\x02') return undefined
    const [flags, method] = [bytes.readUInt16LE(at + 8), bytes.readUInt16LE(at + 10)]
    const [size, unpacked] = [bytes.readUInt32LE(at + 20), bytes.readUInt32LE(at + 24)]
    const [name, extra, comment] = [
      bytes.readUInt16LE(at + 28),
      bytes.readUInt16LE(at + 30),
      bytes.readUInt16LE(at + 32),
    ]
    total += unpacked
    if ((flags & 1) === 1 || total > ZIP_LIMITS.bytes) return 'unsafe'
    if (method === 0 || method === 8)
      members.set(bytes.toString('utf8', at + 46, at + 46 + name), {
        packed: method === 8,
        from: bytes.readUInt32LE(at + 42),
        size,
        unpacked,
      })
    at += 46 + name + extra + comment
  }
  return {
    names: [...members.keys()],
    text: async (wanted) => {
      const member = members.get(wanted)
      if (
        !member ||
        member.from + 30 > bytes.length ||
        bytes.toString('latin1', member.from, member.from + 4) !== 'PK\x03\x04'
      )
        return undefined
      const begin =
        member.from +
        30 +
        bytes.readUInt16LE(member.from + 26) +
        bytes.readUInt16LE(member.from + 28)
      const content = bytes.subarray(begin, begin + member.size)
      // A member that is larger than announced is treated as damaged.
      const most = Math.min(ZIP_LIMITS.text, member.unpacked)
      const whole = member.packed
        ? await unpack(content, { maxOutputLength: Math.max(1, most) }).catch(() => undefined)
        : content.length <= most
          ? content
          : undefined
      return whole?.toString('utf8')
    },
  }
}
