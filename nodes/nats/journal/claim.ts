/**
 * Ensures that only one process owns the data folder of an embedded NATS server. Two servers on one
 * store would corrupt it, so a file in the folder identifies the owner and its server. A server
 * that outlived its owner, for example after a crash, is stopped before the next server starts. A
 * process is identified by its id and its command line, because ids are reused.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StartFault } from '../../process/fault.ts'
import { writePrivate } from '../../storage/private.ts'
import type { Access } from '../server/access.ts'
import { keptSeed } from '../server/identity.ts'

interface Known {
  readonly pid: number
  readonly command: string
}
interface Claim {
  readonly owner: Known
  readonly server: Known
  readonly url: string
}

const file = (folder: string) => join(folder, 'owner.json')

/** Returns the command line of a running process; empty when there is no such process. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    try {
      return execFileSync('ps', ['-p', String(pid), '-o', 'args='], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim()
    } catch {
      return ''
    }
  }
}
const known = (pid: number): Known => ({ pid, command: commandOf(pid) })
const lives = ({ pid, command }: Known): boolean => command !== '' && commandOf(pid) === command

/**
 * Records this process as the owner of the folder, with its server process `server` and the
 * server's URL.
 */
export const claimFolder = (folder: string, server: number, url: string): void =>
  writePrivate(
    file(folder),
    JSON.stringify({ owner: known(process.pid), server: known(server), url } satisfies Claim),
  )
/**
 * Returns the data for accessing the server in the folder if the server and its owner are running;
 * undefined otherwise.
 * @throws StartFault when the folder belongs to another user.
 */
export function runningIn(folder: string): Access | undefined {
  try {
    const { owner, server, url } = JSON.parse(readFileSync(file(folder), 'utf8')) as Claim
    if (!lives(owner) || !lives(server)) return undefined
    const seed = keptSeed(folder)
    return { servers: [url], ...(seed !== undefined && { credentials: { type: 'nkey', seed } }) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES')
      throw new StartFault(
        `${folder} belongs to another user: run this command as the user who runs Baton, ` +
          'or specify the NATS servers with --nats.',
      )
    return undefined
  }
}
/** Removes the record of the owner and its server, after the server has ended. */
export const unclaimFolder = (folder: string): void => rmSync(file(folder), { force: true })

/**
 * Makes sure that no server runs in the folder.
 * @throws StartFault when the server belongs to another running process, or an orphaned server
 *   cannot be stopped.
 */
export async function clearFolder(folder: string): Promise<void> {
  let claim: Claim
  try {
    claim = JSON.parse(readFileSync(file(folder), 'utf8')) as Claim
  } catch {
    return
  }
  const { owner, server } = claim
  if (!lives(server)) return
  if (lives(owner))
    throw new StartFault(
      `Process ${owner.pid} is already running with the data in ${folder}. ` +
        'Stop it, or choose another folder with BATON_DATA.',
    )
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    try {
      process.kill(server.pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return
      throw new StartFault(
        `A NATS server (process ${server.pid}) still uses ${folder} and belongs to another user. Stop it first.`,
      )
    }
    for (let waited = 0; waited < 10_000 && lives(server); waited += 50) await sleep(50)
    if (!lives(server)) return
  }
  throw new StartFault(
    `The NATS server (process ${server.pid}) that still uses ${folder} cannot be stopped. Stop it manually first.`,
  )
}
