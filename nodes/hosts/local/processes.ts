/**
 * Finds and ends the processes of environments. It reads `/proc`, so it also finds processes that
 * left the process group of their worker or remain from an earlier run of the host.
 */
import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** Identifies a process. Ids are reused, but an id together with the start time is unique. */
export interface ProcessId {
  readonly pid: number
  /** Start time of the process, in clock ticks since the start of the machine. */
  readonly started: string
}
/**
 * A selection of processes: those with a text in their environment variables, and those of a user.
 */
export interface Belonging {
  /** Processes with this text in their environment variables are selected. */
  readonly marker: string
  /** Id of a user. If present, all processes of this user are selected, too. */
  readonly uid?: number
}
/** Name of the environment variable with the marker. */
export const MARKER = 'BATON_LOCAL_ENVIRONMENT'
/** Returns the marker of all processes of a place. */
export const markerOf = (place: string): string => `${MARKER}=${place}/`
/** Selects the processes of an environment of a place. */
export const belongingTo = (
  place: string,
  { environment_id, uid }: { readonly environment_id: string; readonly uid?: number },
): Belonging => ({
  marker: `${markerOf(place)}${environment_id}/`,
  ...(uid !== undefined && { uid }),
})
/** Milliseconds within which killed processes must end. */
const END_TIMEOUT_MS = 10_000
/** Milliseconds between two checks of whether the processes have ended. */
const CHECK_EVERY_MS = 10

const read = (path: string): Promise<string> => readFile(path, 'latin1').catch(() => '')

/** Returns the identity of a running process; undefined when it has ended or is a zombie. */
export async function identify(pid: number): Promise<ProcessId | undefined> {
  const stat = await read(`/proc/${pid}/stat`)
  // The name of the program is in parentheses and may contain anything.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // In proc(5), the state is field 3 and the start time is field 22. `fields` begins with field 4.
  const started = fields[18]
  return started === undefined || state === 'Z' || state === 'X' ? undefined : { pid, started }
}
export const isRunning = async ({ pid, started }: ProcessId): Promise<boolean> =>
  (await identify(pid))?.started === started

/** Whether a process is selected. A process that has ended is never selected. */
async function belongs(pid: number, { marker, uid }: Belonging): Promise<boolean> {
  if ((await read(`/proc/${pid}/environ`)).includes(marker)) return true
  if (uid === undefined) return false
  const status = await read(`/proc/${pid}/status`)
  const uids = /^Uid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/) ?? []
  return uids.includes(String(uid)) && !/^State:\s+[ZX]/m.test(status)
}
/** Returns the ids of the selected running processes. The result is empty without `/proc`. */
export async function processesOf(which: Belonging): Promise<readonly number[]> {
  const pids = (await readdir('/proc').catch(() => []))
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid)
  const found = await Promise.all(
    pids.map(async (pid) => ((await belongs(pid, which)) ? [pid] : [])),
  )
  return found.flat()
}

/**
 * Sends a signal to a process, or to a process group if the id is negative. Does nothing if the
 * process has ended, or if this process is not permitted to signal it.
 */
export function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ESRCH' && code !== 'EPERM') throw error
  }
}
/**
 * Kills all processes of a user with one call. Unlike signals to the processes of a list, `kill -1`
 * does not miss children that are created in the meantime.
 */
const killUser = (uid: number): Promise<void> =>
  new Promise((done) => {
    const child = spawn('/bin/sh', ['-c', 'kill -9 -1'], {
      uid,
      gid: uid,
      cwd: '/',
      env: {},
      stdio: 'ignore',
    })
    child.once('exit', () => done())
    child.once('error', () => done())
  })

/**
 * Kills the selected processes. Resolves when none is left.
 * @throws Error when some do not end in time, for example because they wait for a device.
 */
export async function endProcesses(which: Belonging): Promise<void> {
  const until = performance.now() + END_TIMEOUT_MS
  for (;;) {
    const left = await processesOf(which)
    if (left.length === 0) return
    if (performance.now() > until)
      throw new Error(`processes of an environment do not end: ${left.slice(0, 5).join(', ')}`)
    if (which.uid !== undefined) await killUser(which.uid)
    // Stopped processes create no children while the others are killed.
    for (const pid of left) kill(pid, 'SIGSTOP')
    for (const pid of left) kill(pid)
    await sleep(CHECK_EVERY_MS)
  }
}
