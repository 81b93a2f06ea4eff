/**
 * A nats-server with the test's own configuration, for connections that the embedded server does
 * not offer. It listens on a free port of 127.0.0.1.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findServer } from '../../../nodes/nats/server/install.ts'
import { endWithUs } from '../../../nodes/process/ending.ts'
import { freePort } from '../../support/ports.ts'

export interface PlainServer {
  /** `127.0.0.1:<port>`. */
  readonly address: string
  stop(): Promise<void>
}
export const jetstreamBlock = (folder: string, domain?: string): string =>
  `jetstream { store_dir: ${JSON.stringify(join(folder, 'store'))}` +
  `${domain === undefined ? '' : `, domain: ${domain}`} }`

/**
 * Starts a server and waits until it reports that it is ready.
 * @param folder the folder of its configuration, which is created if it is missing.
 * @param configuration the text that follows the server name, the address and the maximum payload
 * size.
 * @throws {Error} with the output of the server, when it ends before it is ready.
 */
export async function startPlainServer(
  folder: string,
  configuration: string,
): Promise<PlainServer> {
  const { path } = await findServer(process.env)
  const port = await freePort()
  const file = join(folder, 'nats.conf')
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    file,
    `server_name: s${port}\nhost: 127.0.0.1\nport: ${port}\nmax_payload: 8MB\n${configuration}\n`,
  )
  const child = spawn(path, ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'], detached: true })
  const release = endWithUs(child)
  const exited = new Promise<void>((done) => child.once('exit', () => done()))
  void exited.then(release)
  let output = ''
  await new Promise<void>((ready, failed) => {
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-8192)
      if (output.includes('Server is ready')) ready()
    })
    child.once('error', failed)
    child.once('exit', () => failed(new Error(`nats-server ended at start:\n${output}`)))
  })
  return {
    address: `127.0.0.1:${port}`,
    stop: async () => {
      child.kill('SIGTERM')
      await exited
    },
  }
}
