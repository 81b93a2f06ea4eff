/**
 * Kills what a command has left: the processes of its group and its session, and those that still
 * have its mark in their environment. Processes that left the session and have overwritten their
 * environment are not found; a sandbox ends them together with the worker.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** Milliseconds. `limit`: how long processes are looked for. `pause`: time between two searches. */
const timing = { limit: 2000, pause: 20 } as const

/**
 * Kills a process group at once, if it exists.
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
 * Kills everything that the command has left, and resolves when nothing of it is found.
 * @param group process group and session of the command.
 * @param mark the variable, with its value, that marks its processes.
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
    // Not Linux: the signal to the group is all that can be done.
    return []
  }
}
function belongs(id: number, group: number, mark: string | undefined): boolean {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, 'latin1')
    // After the name, which may contain spaces: state, parent, group, session.
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
