/**
 * Runs `baton backup` and `baton restore`, whose options are in backup-options.ts. Both use the
 * configured NATS servers. If none are configured, they use the NATS server of the data folder and
 * start it if necessary.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Progress, takeBackup } from '../backup/backup.ts'
import { restoreBackup } from '../backup/restore.ts'
import { type Config, readConfig } from '../config.ts'
import { runningIn } from '../nats/journal/claim.ts'
import { connectNats, type Nats } from '../nats/server/connect.ts'
import { findServer } from '../nats/server/install.ts'
import { startServer } from '../nats/server/server.ts'
import { createLog } from '../observe/log.ts'
import { StartFault } from '../process/fault.ts'
import { ownerKeyFile } from '../storage/owner-key.ts'

interface Given {
  readonly nats?: string
  readonly data?: string
}
export interface BackupGiven extends Given {
  readonly to: string
}
export interface RestoreGiven extends Given {
  readonly from: string
  readonly replicas?: string
  readonly again?: true
}

const settings = ({ nats, data }: Given, replicas?: string): Config => {
  const flags = Object.entries({ '--nats': nats, '--data': data, '--replicas': replicas }).flatMap(
    ([flag, value]) => (value === undefined ? [] : [flag, value]),
  )
  const read = readConfig(process.env, flags)
  if ('config' in read) return read.config
  throw new StartFault(
    `Invalid settings:\n${read.faults.map((fault) => `  - ${fault}`).join('\n')}`,
  )
}

/**
 * Runs a task on the configured NATS servers. A server that was started for the task is stopped
 * afterwards.
 */
async function connected(
  config: Config,
  mayBeNew: boolean,
  run: (nats: Nats) => Promise<void>,
): Promise<void> {
  const log = createLog({ level: 'error' })
  const folder = resolve(join(config.data, 'nats'))
  const running =
    config.nats.length > 0 ? { servers: config.nats, ...config.nats_access } : runningIn(folder)
  if (!running && !mayBeNew && !existsSync(join(folder, 'store'))) {
    throw new StartFault(
      `${folder} contains no data. Specify the NATS servers with --nats, or the data folder of the node with --data.`,
    )
  }
  const prefix =
    config.nats_access.prefix === undefined ? {} : { prefix: config.nats_access.prefix }
  const server = running
    ? undefined
    : await startServer({
        binary: (await findServer(process.env, (line) => process.stderr.write(`${line}\n`))).path,
        data: folder,
        port: 0,
        sync: config.sync,
      }).catch(unusable(folder))
  try {
    const nats = await connectNats({
      access: { ...(running ?? server?.access ?? { servers: [] }), ...prefix },
      name: 'baton backup',
      log,
      role: mayBeNew ? 'restore' : 'backup',
      within: 10_000,
    })
    try {
      await nats.permitted(run(nats))
    } finally {
      await nats.close()
    }
  } finally {
    await server?.stop()
  }
}

/** Returns an error handler that throws a StartFault if nothing can be written to the folder. */
const unusable =
  (folder: string) =>
  (error: NodeJS.ErrnoException): never => {
    if (!['EROFS', 'EACCES', 'EPERM', 'ENOSPC'].includes(error.code ?? '')) throw error
    throw new StartFault(
      `The NATS server cannot be started on ${folder} (${error.message}). ` +
        'Make the folder writable, or copy the data folder to another disk and specify the copy ' +
        'with --data.',
    )
  }

const size = (bytes: number): string =>
  bytes < 1e6
    ? `${Math.ceil(bytes / 1000)} kB`
    : bytes < 1e9
      ? `${(bytes / 1e6).toFixed(1)} MB`
      : `${(bytes / 1e9).toFixed(2)} GB`
/**
 * Shows progress on standard error: on a terminal, a line that is updated; elsewhere, one line per
 * part.
 */
function shown(): Progress {
  const live = process.stderr.isTTY === true
  let part = { what: '', about: 0, bytes: 0, told: 0 }
  return {
    begin: (what, about) => {
      part = { what, about, bytes: 0, told: 0 }
    },
    moved: (bytes) => {
      part.bytes += bytes
      if (!live || performance.now() - part.told < 100) return
      part.told = performance.now()
      process.stderr.write(
        `\r\x1b[K  ${part.what.padEnd(14)} ${size(part.bytes)}` +
          (part.about > 0 ? ` of at most about ${size(part.about)}` : ''),
      )
    },
    end: (summary) =>
      void process.stderr.write(
        `${live ? '\r\x1b[K' : ''}  ${part.what.padEnd(14)} ${size(part.bytes).padStart(9)}  ${summary}\n`,
      ),
  }
}

/** Backs the system up, and prints a summary. */
export async function backup(given: BackupGiven): Promise<void> {
  const started = performance.now()
  await connected(settings(given), false, async (nats) => {
    const { streams } = await takeBackup(nats, given.to, shown())
    const bytes = streams.reduce((sum, stream) => sum + stream.bytes, 0)
    process.stdout.write(
      `Backed up to ${resolve(given.to)}: ` +
        `${size(bytes)} in ${((performance.now() - started) / 1000).toFixed(1)} s.\n` +
        'The backup contains the hashes of all keys and the sealing secret: ' +
        'protect it like the system itself.\n',
    )
  })
}

/** Restores a backup into an empty system, and prints a summary. */
export async function restore(given: RestoreGiven): Promise<void> {
  const started = performance.now()
  const config = settings(given, given.replicas)
  // A single server stores only one replica. On a cluster, the number of replicas in the backup
  // applies unless another number is set.
  const told = given.replicas ?? (process.env['BATON_REPLICAS'] || undefined)
  const replicas = config.nats.length === 0 ? 1 : told === undefined ? undefined : config.replicas
  await connected(config, true, async (nats) => {
    const {
      partitions,
      shards,
      replicas: kept,
      root_hash,
    } = await restoreBackup(nats, given.from, { replicas, again: given.again === true }, shown())
    process.stdout.write(
      `Restored in ${((performance.now() - started) / 1000).toFixed(1)} s. ` +
        `Start the nodes with BATON_PARTITIONS=${partitions} BATON_SHARDS=${shards} BATON_REPLICAS=${kept}; ` +
        `keys are those of the backed-up system.\n${ownerKeyNote(config, root_hash)}`,
    )
  })
}

/**
 * Returns a note about the location of the owner key. A backup contains only the hash of the key,
 * and the data folder may contain the key of another system.
 */
function ownerKeyNote({ data }: Config, root_hash: string): string {
  const { file, holds } = ownerKeyFile(data, { root_hash })
  if (holds === 'the key') return `The owner key is the one in ${file}.\n`
  return holds === 'another key'
    ? `The owner key in ${file} belongs to another system and is not accepted: ` +
        'replace it with the owner key of the backed-up system.\n'
    : 'A backup does not contain the owner key: use the key of the backed-up system.\n'
}
