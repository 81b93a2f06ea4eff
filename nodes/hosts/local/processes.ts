/**
 * The processes of environments, found in `/proc` of Linux: to end all of them, also those that
 * left the process group of their worker, and those that an earlier process of the host left.
 */
import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** A process: ids are reused, the pair with the start time is not. */
export interface ProcessId {
  readonly pid: number
  /** Clock ticks between the start of the machine and that of the process. */
  readonly started: string
}
/** Which processes belong together: those with a text in their variables, or those of a user. */
export interface Belonging {
  /** A text that the variables of the processes contain. */
  readonly marker: string
  /** Id of a user that has no other processes. */
  readonly uid?: number
}
/** Name of the variable with the marker. */
export const MARKER = 'BATON_LOCAL_ENVIRONMENT'
/** Milliseconds in which killed processes must have ended, and between two looks at them. */
const END_TIMEOUT_MS = 10_000
const LOOK_MS = 10

const read = (path: string): Promise<string> => readFile(path, 'latin1').catch(() => '')

/** The identity of a running process; undefined when there is none, or it only awaits its parent. */
export async function identify(pid: number): Promise<ProcessId | undefined> {
  const stat = await read(`/proc/${pid}/stat`)
  // The name of the program is in parentheses and may contain anything.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // The start time is field 22; the state is field 3.
  const started = fields[18]
  return started === undefined || state === 'Z' || state === 'X' ? undefined : { pid, started }
}
export const isRunning = async ({ pid, started }: ProcessId): Promise<boolean> =>
  (await identify(pid))?.started === started

/** Whether a process belongs to the others. A process that has ended belongs to none. */
async function belongs(pid: number, { marker, uid }: Belonging): Promise<boolean> {
  if ((await read(`/proc/${pid}/environ`)).includes(marker)) return true
  if (uid === undefined) return false
  const status = await read(`/proc/${pid}/status`)
  const uids = /^Uid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/) ?? []
  return uids.includes(String(uid)) && !/^State:\s+[ZX]/m.test(status)
}
/** Returns the ids of the running processes that belong together. Empty without `/proc`. */
export async function processesOf(which: Belonging): Promise<readonly number[]> {
  const pids = (await readdir('/proc').catch(() => []))
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid)
  const found = await Promise.all(
    pids.map(async (pid) => ((await belongs(pid, which)) ? [pid] : [])),
  )
  return found.flat()
}

/** Kills a process, or with a negative id its group, unless it has ended. */
export function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ESRCH' && code !== 'EPERM') throw error
  }
}
/**
 * Kills all processes of a user at once: `kill -1` misses no child that is being created, unlike a
 * list of processes that grows while it is read.
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
 * Ends all processes that belong together. Resolves when none is left.
 * @throws Error when some do not end in time, which is possible while they wait for a device.
 */
export async function endProcesses(which: Belonging): Promise<void> {
  const until = Date.now() + END_TIMEOUT_MS
  for (;;) {
    const left = await processesOf(which)
    if (left.length === 0) return
    if (Date.now() > until)
      throw new Error(`processes of an environment do not end: ${left.slice(0, 5).join(', ')}`)
    if (which.uid !== undefined) await killUser(which.uid)
    // A stopped process creates no children while the list is worked off.
    for (const pid of left) kill(pid, 'SIGSTOP')
    for (const pid of left) kill(pid)
    await sleep(LOOK_MS)
  }
}
