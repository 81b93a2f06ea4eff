/**
 * Kills the processes that a command left behind: those in its process group or session, and those
 * whose environment contains its mark. Processes that left the session and overwrote their
 * environment are not found. A sandbox ends them together with the worker.
 */
import { readdirSync, readFileSync } from 'node:fs'

/**
 * Timing in milliseconds. `limit` is the maximum duration of all searches for processes, and
 * `pause` the time between two searches.
 */
const timing = { limit: 2000, pause: 20 } as const

/**
 * Sends a signal to a process group, if the group exists.
 * @param group id of the group.
 */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch {
    // The group has ended.
  }
}
/**
 * Kills the processes that a command left behind. Resolves when no process is found, or after the
 * time limit.
 * @param group id of both the process group and the session of the command.
 * @param mark the environment variable, as `name=value`, that marks the processes.
 */
export async function killLeftovers(group: number, mark?: string): Promise<void> {
  const end = performance.now() + timing.limit
  for (;;) {
    signalGroup(group, 'SIGKILL')
    const found = find(group, mark)
    for (const id of found) kill(id)
    if (found.length === 0 || performance.now() > end) return
    await new Promise((done) => setTimeout(done, timing.pause))
  }
}
function kill(id: number): void {
  try {
    process.kill(id, 'SIGKILL')
  } catch {
    // The process has ended.
  }
}
/** Returns the ids of the live processes that belong to the command. */
function find(group: number, mark: string | undefined): number[] {
  const found: number[] = []
  for (const name of entries()) {
    const id = Number(name)
    if (Number.isInteger(id) && id !== process.pid && belongs(id, group, mark)) found.push(id)
  }
  return found
}
function entries(): readonly string[] {
  try {
    return readdirSync('/proc')
  } catch {
    // Without /proc, only the process group can be signaled.
    return []
  }
}
function belongs(id: number, group: number, mark: string | undefined): boolean {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, 'latin1')
    // The fields after the name, which may contain spaces, are: state, parent, group, session.
    const [state, , itsGroup, session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (state === 'Z' || state === 'X') return false
    if (Number(itsGroup) === group || Number(session) === group) return true
    if (mark === undefined) return false
    return readFileSync(`/proc/${id}/environ`, 'latin1').split('\0').includes(mark)
  } catch {
    // The process has ended, or belongs to another user.
    return false
  }
}
