/** `baton tour`: uses a running server, or starts one for the tour. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  addressesOf,
  isLoopback,
  keyFiles,
  serverOf,
} from '../../client/cli/connection/connection.ts'
import { runTour } from '../../client/tour/tour.ts'
import { readConfig } from '../config.ts'
import { findServer } from '../nats/server/install.ts'
import { startServer } from '../nats/server/server.ts'
import { startNode } from '../node.ts'
import { createLog } from '../observe/log.ts'
import { StartFault } from '../process/fault.ts'

/**
 * Returns the stored owner keys of servers that were started on this machine. The list is empty if
 * any URL has an address other than loopback, so that the keys never leave this machine.
 */
const stored = (urls: readonly string[]): string[] =>
  urls.every(isLoopback)
    ? keyFiles(process.env)
        .filter((file) => existsSync(file))
        .map((file) => readFileSync(file, 'utf8').trim())
    : []

/**
 * Returns the first key that the server accepts.
 * @throws StartFault when it accepts none of the keys.
 */
async function accepted(url: string, keys: readonly string[]): Promise<string> {
  for (const key of keys)
    if (
      (await fetch(`${url}/v1/projects`, { headers: { authorization: `Bearer ${key}` } }))
        .status !== 401
    )
      return key
  throw new StartFault(
    `${url} does not accept any of the keys found (BATON_KEY, ` +
      `${keyFiles(process.env).join(', ')}). Pass a key with --key.`,
  )
}
const answers = async (url: string): Promise<boolean> =>
  fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) }).then(
    (answer) => answer.ok,
    () => false,
  )

/** Runs the tour. The exit code is 0 when every part had the expected outcome. */
export async function runTourCommand({
  server,
  key,
  folder,
  loop,
  agent,
  tables,
  coding,
}: {
  server?: string
  key?: string
  folder: string
  loop: boolean
  agent: boolean
  tables: boolean
  coding: boolean
}): Promise<void> {
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort())
  const common = {
    project: 'default',
    folder,
    loop,
    agent,
    tables,
    coding,
    out: process.stdout,
    signal: stop.signal,
  }
  const urls = addressesOf(server ?? serverOf(process.env))
  const read = readConfig(process.env, [])
  if (!('config' in read)) throw new StartFault(read.faults.join('\n'))
  const { config } = read
  const given = key ?? process.env['BATON_KEY']
  const reached = (await Promise.all(urls.map(answers))).indexOf(true)
  if (reached >= 0) {
    const used = given ?? (await accepted(urls[reached] ?? '', stored(urls)))
    process.exitCode = (await runTour({ ...common, url: urls, key: used })) ? 0 : 1
    return
  }
  process.stdout.write(`No server answers at ${urls.join(', ')}; starting one for the tour.\n`)
  const log = createLog({ level: 'warn' })
  const { path } = await findServer(process.env, (line) => process.stderr.write(`${line}\n`))
  const nats = await startServer({
    binary: path,
    data: join(config.data, 'nats'),
    port: 0,
    sync: config.sync,
  })
  const node = await startNode({ ...config, nats: [], port: 0 }, nats.access, log)
  try {
    const url = node.url ?? ''
    // The given key may belong to the server that did not answer.
    const keys = [...(given === undefined ? [] : [given]), ...stored([url])]
    const used = node.installed.generated?.key ?? (await accepted(url, keys))
    process.exitCode = (await runTour({ ...common, url: [url], key: used })) ? 0 : 1
  } finally {
    await node.stop()
    await nats.stop()
  }
}
