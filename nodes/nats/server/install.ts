/**
 * Finds the nats-server binary: in BATON_NATS_SERVER, the PATH, the cache or the Debian archive, in
 * this order. Run as a program, this file makes sure that a binary exists and prints its path.
 */
import { execFile } from 'node:child_process'
import { access, constants, readdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { StartFault } from '../../process/fault.ts'
import { fetchFromDebian } from './debian.ts'
import { compareVersions, isAccepted, MINIMUM, versionIn } from './version.ts'

const run = promisify(execFile)
type Environment = Readonly<Record<string, string | undefined>>

/** A nats-server binary that runs on this machine, and its version. */
export interface Binary {
  readonly path: string
  readonly version: string
}

/**
 * Returns the binary with the version it reports; undefined when it is absent, does not run or is
 * not nats-server.
 */
async function probe(path: string): Promise<Binary | undefined> {
  try {
    await access(path, constants.X_OK)
    const { stdout } = await run(path, ['--version'], { timeout: 10_000 })
    const version = /nats-server/.test(stdout) ? versionIn(stdout) : undefined
    return version === undefined ? undefined : { path, version }
  } catch {
    return undefined
  }
}

/** Returns the folder that stores fetched binaries. */
export const cacheFolder = (env: Environment): string =>
  join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'baton')

async function cached(folder: string): Promise<Binary | undefined> {
  const files = (await readdir(folder).catch(() => [])).filter((name) =>
    /^nats-server-\d+\.\d+\.\d+$/.test(name),
  )
  for (const name of files.sort((a, b) =>
    compareVersions(versionIn(b) ?? '', versionIn(a) ?? ''),
  )) {
    const found = await probe(join(folder, name))
    if (found && isAccepted(found.version)) return found
  }
  return undefined
}

const help =
  `Install nats-server ${MINIMUM} or newer (https://nats.io/download) ` +
  'and put it on the PATH or set BATON_NATS_SERVER to its path, ' +
  'or set BATON_NATS to a running server.'

/**
 * Finds a nats-server. Downloads the binary if the machine has no version that is recent enough.
 * @param progress receives one message before a download starts.
 * @throws StartFault when no binary is available, or when the one named in BATON_NATS_SERVER cannot
 *   be used.
 */
export async function findServer(
  env: Environment,
  progress: (line: string) => void = () => {},
): Promise<Binary> {
  const named = env['BATON_NATS_SERVER']
  if (named) {
    const found = await probe(named)
    if (!found)
      throw new StartFault(
        `BATON_NATS_SERVER is ${named}, which is not a nats-server that runs on this machine. ${help}`,
      )
    if (!isAccepted(found.version))
      throw new StartFault(
        `BATON_NATS_SERVER is ${named}, version ${found.version}, which is too old. ${help}`,
      )
    return found
  }
  for (const folder of (env['PATH'] ?? '').split(delimiter).filter(Boolean)) {
    const found = await probe(join(folder, 'nats-server'))
    if (found && isAccepted(found.version)) return found
  }
  const cache = cacheFolder(env)
  const kept = await cached(cache)
  if (kept) return kept
  progress('Downloading nats-server from the Debian archive (once, about 6 MB)')
  const reason = await fetchFromDebian(cache).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof StartFault) return error.message
      throw error
    },
  )
  const fetched = await cached(cache)
  if (!fetched)
    throw new StartFault(
      'nats-server is not installed and could not be downloaded: ' +
        `${reason ?? `the archive's version is older than ${MINIMUM}`}. ${help}`,
    )
  return fetched
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  findServer(process.env, (line) => process.stderr.write(`${line}\n`)).then(
    ({ path }) => process.stdout.write(`${path}\n`),
    (error: unknown) => {
      process.stderr.write(
        `${error instanceof StartFault ? error.message : String((error as Error).stack ?? error)}\n`,
      )
      process.exitCode = 1
    },
  )
}
