/** Measures files: line counts as `wc -l` counts them, checksums as `sha256sum` prints them. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { resolve, sep } from 'node:path'
import { byPath } from './files.ts'

/**
 * The measurements of some or all of the files. `sums` has a line `<sha256>  <path>` for each file.
 */
export interface Measured {
  readonly files: number
  readonly lines: number
  readonly sums: string
}

/**
 * Measures files of a folder.
 * @throws Error if a path leads out of the folder, or the signal aborts.
 */
export async function measure(
  folder: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<Measured> {
  let lines = 0
  let sums = ''
  for (const path of paths) {
    signal.throwIfAborted()
    const full = resolve(folder, path)
    if (!full.startsWith(resolve(folder) + sep)) throw new Error(`${path} is not in ${folder}`)
    const hash = createHash('sha256')
    for await (const chunk of createReadStream(full)) {
      const bytes = chunk as Buffer
      hash.update(bytes)
      for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
    }
    sums += `${hash.digest('hex')}  ${path}\n`
  }
  return { files: paths.length, lines, sums }
}

/** Combines the measurements of several parts. Checksums are sorted by path. */
export function combineMeasurements(parts: readonly Measured[]): Measured {
  const all = parts
    .flatMap(({ sums }) => sums.split('\n').filter((line) => line !== ''))
    .sort((a, b) => byPath(pathOf(a), pathOf(b)))
  return {
    files: parts.reduce((sum, { files }) => sum + files, 0),
    lines: parts.reduce((sum, { lines }) => sum + lines, 0),
    sums: all.map((line) => `${line}\n`).join(''),
  }
}
const pathOf = (line: string): string => line.slice(66)

/** Returns the SHA-256 of a list of checksums, which is the hash of the output of `sha256sum`. */
export const digestOf = (sums: string): string => createHash('sha256').update(sums).digest('hex')
