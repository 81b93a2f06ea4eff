/**
 * Starts the PostgreSQL server of one peer: a new cluster on loopback, which ends with this
 * process. Its settings are Debian's defaults (fsync and synchronous_commit on) unless a peer
 * changes them.
 */
import { type ChildProcess, execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { freePort } from '../../nodes/nats/server/server.ts'
import { eventually, folderFor, startStore } from './peer.ts'

/**
 * Returns the user id (`-u`) or group id (`-g`) of the user that Debian's package creates.
 * PostgreSQL refuses to run as root.
 */
const id = (flag: '-u' | '-g'): number =>
  Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))

/**
 * Creates a cluster, starts its server, and waits until it accepts connections.
 * @param bin folder of PostgreSQL's programs.
 * @param settings server settings by name.
 * @returns the process of the server, and the URL of its database `postgres`.
 */
export async function startPostgres(
  bin: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<{ readonly store: ChildProcess; readonly url: string }> {
  const user = process.getuid?.() === 0 ? { uid: id('-u'), gid: id('-g') } : undefined
  const folder = folderFor(user)
  const data = join(folder, 'data')
  const port = await freePort()
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'bench', '--auth', 'trust', '-E', 'UTF8'], {
    stdio: 'ignore',
    cwd: folder,
    ...user,
  })
  const set = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const store = startStore(
    join(bin, 'postgres'),
    ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', folder, ...set],
    { cwd: folder, end: 'SIGQUIT', ...user },
  )
  await eventually(async () =>
    execFileSync(join(bin, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(port)], {
      stdio: 'ignore',
    }),
  )
  return { store, url: `postgres://bench@127.0.0.1:${port}/postgres` }
}
