/** What the machine allows. */
import { readFileSync } from 'node:fs'

/** Open files that a process started here may have. Node raises the soft limit to the hard one by itself. */
const openFiles = (): number =>
  Number(
    /^Max open files\s+\S+\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1] ??
      Number.NaN,
  )

/** As many connections as wanted, or as many as the limit of open files allows, which is said. */
export function allowed(wanted: number, say: (line: string) => void): number {
  const most = openFiles() - 1000
  if (most >= wanted) return wanted
  say(
    `Only ${most} connections instead of ${wanted}: a process may have ${most + 1000} files open. Raise that first: ulimit -Hn ${wanted + 2000}`,
  )
  return most
}
