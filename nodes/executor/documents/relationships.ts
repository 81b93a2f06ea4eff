/** Reads the relationships between the parts of an Office file (ECMA-376 part 2). */
import { posix } from 'node:path'
import type { Parts } from './archive.ts'
import { readXml } from './xml.ts'

interface Relationship {
  readonly id: string
  /** The last segment of the URI of the type, such as `worksheet`. */
  readonly type: string
  /** Name of the part that the relationship refers to. */
  readonly part: string
}

/** Returns the relationships of a part to other parts of the file. */
export function relationshipsOf(parts: Parts, part: string): readonly Relationship[] {
  const folder = posix.dirname(part)
  const name = `${folder}/_rels/${posix.basename(part)}.rels`
  const bytes = parts.get(name)
  const found: Relationship[] = []
  if (bytes)
    readXml(bytes, name, {
      open(tag, { Id: id, Target: target, Type: type = '', TargetMode: mode }) {
        if (tag !== 'Relationship' || id === undefined || !target || mode === 'External') return
        found.push({
          id,
          type: type.slice(type.lastIndexOf('/') + 1),
          part: target.startsWith('/') ? target.slice(1) : posix.join(folder, target),
        })
      },
    })
  return found
}

/** Returns the names of the parts that match a pattern, sorted by the number in its first group. */
export const numberedParts = (parts: Parts, pattern: RegExp): readonly string[] =>
  [...parts.keys()]
    .filter((name) => pattern.test(name))
    .sort((a, b) => Number(pattern.exec(a)?.[1]) - Number(pattern.exec(b)?.[1]))
