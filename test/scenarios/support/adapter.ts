/** Extracts the adapter from docs/operations/providers.md and runs it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { endWithUs } from '../../../nodes/process/ending.ts'
import { freePort } from '../../support/ports.ts'

const root = join(import.meta.dirname, '../../..')
export const SECRET = 'secret of the adapter'.replaceAll(' ', '-')

export function adapterOfDocs(): string {
  const page = readFileSync(join(root, 'docs/operations/providers.md'), 'utf8')
  const [, text] = /```js\n([\s\S]*?)```/.exec(page) ?? []
  if (text === undefined) throw new Error('the page contains no adapter')
  return text
}

export interface Adapter {
  readonly url: string
  /** Starts the process, and resolves at its first output. */
  start(): Promise<void>
  stop(): Promise<void>
}
/**
 * Prepares an adapter with its own port.
 * @param folder contains the program and its environments.
 * @param worker command of the stock worker, without spaces in its arguments.
 */
export async function adapterIn(folder: string, worker: readonly string[]): Promise<Adapter> {
  const program = join(folder, 'adapter.mjs')
  writeFileSync(program, adapterOfDocs())
  const port = await freePort()
  let child: ChildProcess | undefined
  let release = () => {}
  return {
    url: `http://127.0.0.1:${port}`,
    async start() {
      const started = spawn(process.execPath, [program], {
        env: {
          PATH: process.env['PATH'],
          ADAPTER_SECRET: SECRET,
          ADAPTER_DATA: join(folder, 'environments'),
          ADAPTER_PORT: String(port),
          ADAPTER_WORKER: worker.join(' '),
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      child = started
      release = endWithUs(started)
      await once(started.stdout, 'data')
    },
    async stop() {
      release()
      if (!child) return
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
      child = undefined
    },
  }
}
