/** Computes the totals of the tour with the system tools `wc` and `sha256sum`. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { digestOf } from './measure.ts'

/** Maximum number of files on one command line. */
const MAX_FILES = 400
const exec = promisify(execFile)

/**
 * Returns the number of lines according to `wc -l`, the output of `sha256sum` for the files in the
 * given order, and the hash of this output.
 * @throws Error if a tool or a file is missing.
 */
export async function fromTools(
  folder: string,
  paths: readonly string[],
): Promise<{ lines: number; sha256: string; sums: string }> {
  const run = async (tool: string, ...args: string[]): Promise<string> =>
    (await exec(tool, args, { cwd: folder, maxBuffer: 2 ** 28 })).stdout
  let lines = 0
  let sums = ''
  for (let at = 0; at < paths.length; at += MAX_FILES) {
    const some = paths.slice(at, at + MAX_FILES)
    const counted = (await run('wc', '-l', '--', ...some)).trimEnd().split('\n')
    for (const line of counted.slice(0, some.length)) lines += Number.parseInt(line.trim(), 10)
    sums += await run('sha256sum', '--', ...some).catch((error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' ? run('shasum', '-a', '256', '--', ...some) : Promise.reject(error),
    )
  }
  return { lines, sha256: digestOf(sums), sums }
}

/** Returns the file paths of the `sha256sum` lines in `ours` that `theirs` does not contain. */
export function differences(ours: string, theirs: string): string[] {
  const other = new Set(theirs.split('\n'))
  return ours
    .split('\n')
    .filter((line) => line !== '' && !other.has(line))
    .map((line) => line.slice(66))
}
