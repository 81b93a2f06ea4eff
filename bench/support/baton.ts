/**
 * Starts Baton as the system under load: a separate server process with its own NATS server. Its
 * data folder is deleted when the server stops, unless the caller provides the folder.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programArguments } from '../../nodes/commands/child.ts'
import { freePort } from '../../nodes/nats/server/server.ts'
import { endWithUs } from '../../nodes/process/ending.ts'
import type { ProcessIds } from './processes.ts'

/**
 * Default maximum time until a server is ready, in milliseconds. A server without views builds them
 * before it is ready, which may take longer.
 */
const READY_TIMEOUT_MS = 60_000

/** The server that requests are sent to. */
export interface Target {
  readonly port: number
  readonly key: string
}
export interface Baton extends Target {
  /** Process ids of the server, its NATS server, and this process, which produces the load. */
  readonly processes: Required<ProcessIds>
  readonly data: string
  /** Milliseconds from the start of the server until it was ready. */
  readonly took: number
  /** Stops the server gracefully, and deletes its data unless the folder was given. */
  stop(): Promise<void>
}
export interface BatonOptions {
  /** When the NATS server syncs to disk: `always`, or an interval. */
  readonly sync: string
  /** Existing data folder, which is not deleted. By default, a new folder is used. */
  readonly data?: string
  /** Folder for a CPU profile of the server. */
  readonly profile?: string | undefined
  /** Maximum time until the server is ready, in milliseconds; a minute by default. */
  readonly within?: number
  /** Node.js arguments that start the program; by default, the program of this working tree. */
  readonly program?: readonly string[]
  /** Additional flags for Node.js. */
  readonly node?: readonly string[]
  /** Additional settings of the server, by name. */
  readonly settings?: Readonly<Record<string, string>>
}
/** Creates a folder for one run, on the disk that all measured systems use. */
export const newFolder = (): string => mkdtempSync(join(tmpdir(), 'baton-bench-'))

/**
 * Starts a server, and waits until it is ready.
 * @throws Error if the server ends or is not ready in time.
 */
export async function startBaton({
  sync,
  data: given,
  profile,
  within = READY_TIMEOUT_MS,
  program: started = programArguments(),
  node = [],
  settings = {},
}: BatonOptions): Promise<Baton> {
  const data = given ?? newFolder()
  const port = await freePort()
  const flags = [
    ...node,
    ...(profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]),
  ]
  const child = spawn(process.execPath, [...flags, ...started, 'start'], {
    env: {
      ...process.env,
      BATON_DATA: data,
      BATON_PORT: String(port),
      BATON_SYNC: sync,
      BATON_RATE_KEY: '0',
      BATON_RATE_ORG: '0',
      BATON_LOG_LEVEL: 'error',
      ...settings,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  const release = endWithUs(child)
  const from = performance.now()
  const until = from + within
  while (
    !(await fetch(`http://127.0.0.1:${port}/readyz`).then(
      (answer) => answer.ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null || performance.now() > until)
      throw new Error(`the server did not become ready within ${within / 1000} s`)
    await new Promise((again) => setTimeout(again, 100))
  }
  const took = performance.now() - from
  const stop = async () => {
    release()
    child.kill('SIGTERM')
    await ended
    if (given === undefined) rmSync(data, { recursive: true, force: true })
  }
  const nats = Number(readFileSync(join(data, 'nats', 'nats.pid'), 'utf8'))
  return {
    port,
    key: readFileSync(join(data, 'root.key'), 'utf8').trim(),
    data,
    processes: { server: [child.pid ?? 0], store: [nats], load: [process.pid] },
    took,
    stop,
  }
}
