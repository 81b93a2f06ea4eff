/**
 * Reads the resource usage of processes from `/proc` (proc(5)): CPU time in steps of 10 ms, and
 * resident memory.
 */
import { readFileSync } from 'node:fs'

/** Process ids by role. A role is absent if it has no process. */
export interface ProcessIds {
  readonly server?: readonly number[]
  readonly store?: readonly number[]
  readonly load?: readonly number[]
}
const TICKS_PER_SECOND = 100

function ticksOf(pid: number): number {
  try {
    // The program name may contain spaces and parentheses. User and system time are the 12th and
    // 13th fields after it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    return Number(fields[11]) + Number(fields[12])
  } catch {
    return 0
  }
}
/** Returns the user and system CPU time of each role since its processes started, in seconds. */
export const cpuSeconds = (
  processes: ProcessIds,
): Readonly<Partial<Record<keyof ProcessIds, number>>> =>
  Object.fromEntries(
    Object.entries(processes).map(([who, pids]: [string, readonly number[]]) => [
      who,
      pids.reduce((sum, pid) => sum + ticksOf(pid), 0) / TICKS_PER_SECOND,
    ]),
  )

/** Returns the ids of a process and its descendants. */
export function family(pid: number): number[] {
  let children: string[] = []
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
      .split(' ')
      .filter(Boolean)
  } catch {
    return []
  }
  return [pid, ...children.flatMap((child) => family(Number(child)))]
}
/** Returns the resident memory of a process in bytes. */
export const resident = (pid: number): number =>
  Number(
    /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? Number.NaN,
  ) * 1024
