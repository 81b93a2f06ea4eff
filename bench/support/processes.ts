/** What processes cost, as Linux counts it (proc(5)): processor time in steps of 10 ms, resident memory. */
import { readFileSync } from 'node:fs'

/** Processes by their part; absent where there is no such process. */
export interface Parties {
  readonly server?: readonly number[]
  readonly store?: readonly number[]
  readonly load?: readonly number[]
}
const TICKS_PER_SECOND = 100

function ticksOf(pid: number): number {
  try {
    // The name of the program may contain spaces and brackets; user and system time are the 12th and 13th field after it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    return Number(fields[11]) + Number(fields[12])
  } catch {
    return 0
  }
}
/** Processor time, user and system, that each part has used since it began. */
export const cpuSeconds = (parties: Parties): Readonly<Partial<Record<keyof Parties, number>>> =>
  Object.fromEntries(
    Object.entries(parties).map(([who, pids]: [string, readonly number[]]) => [
      who,
      pids.reduce((sum, pid) => sum + ticksOf(pid), 0) / TICKS_PER_SECOND,
    ]),
  )

/** A process and all that it has started. */
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
/** Resident memory in bytes. */
export const resident = (pid: number): number =>
  Number(
    /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? Number.NaN,
  ) * 1024
