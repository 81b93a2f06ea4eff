/** Determines how many connections the limits of the machine allow. */
import { readFileSync } from 'node:fs'

/**
 * Returns the maximum number of open files of this process, which child processes inherit. Node.js
 * has already raised the soft limit to the hard limit.
 */
const openFiles = (): number =>
  Number(
    /^Max open files\s+\S+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1] ??
      Number.NaN,
  )

/**
 * Returns the desired number of connections, or fewer if the limit on open files requires it. 1,000
 * open files are reserved for other purposes. Reports a reduction.
 */
export function allowed(wanted: number, say: (line: string) => void): number {
  const most = openFiles() - 1000
  if (most >= wanted) return wanted
  say(
    `Only ${most} connections instead of ${wanted}: ` +
      `a process may have ${most + 1000} files open. ` +
      `Raise that first: ulimit -Hn ${wanted + 2000}`,
  )
  return most
}
