/**
 * Starts the stub of a model provider as a separate process, and provides the setting that
 * configures it.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from '../given.ts'

export interface Provider {
  readonly url: string
  /**
   * The value of `BATON_MODELS`. It configures this provider, an unreachable provider, and a
   * provider without a key.
   */
  readonly setting: string
  readonly key: string
  seen(): Promise<{ path: string; authorization?: string; body: Record<string, never> }[]>
  close(): Promise<void>
}

/**
 * Starts the stub. Its API key is stored in the environment variable `STUB_KEY` of this process.
 */
export async function provider(): Promise<Provider> {
  const folder = mkdtempSync(join(tmpdir(), 'baton-stub-'))
  const file = join(folder, 'url')
  const child = spawn(
    process.execPath,
    [
      '--import',
      '@oxc-node/core/register',
      fileURLToPath(new URL('./openai-stub.ts', import.meta.url)),
      file,
    ],
    { stdio: ['pipe', 'ignore', 'ignore'] },
  )
  const ended = new Promise<void>((done) => child.on('exit', () => done()))
  const url = await until(
    async () => (existsSync(file) ? readFileSync(file, 'utf8') : ''),
    (text) => text !== '',
  )
  const key = 'sk-stub-4f1d9c20'
  process.env['STUB_KEY'] = key
  return {
    url,
    key,
    setting: JSON.stringify({
      silence_seconds: 1,
      providers: [
        {
          provider: 'stub',
          kind: 'openai-compatible',
          base_url: `${url}/v1`,
          key: 'env:STUB_KEY',
          models: [
            { id: 'small', context_window_tokens: 8000, recommended: true, max_effort: 'high' },
          ],
        },
        {
          provider: 'gone',
          kind: 'openai-compatible',
          base_url: 'http://127.0.0.1:9/v1',
          models: [{ id: 'lost', context_window_tokens: 8000 }],
        },
        {
          provider: 'keyless',
          kind: 'anthropic',
          key: 'env:NOT_SET_ANYWHERE',
          models: [{ id: 'claude', context_window_tokens: 8000 }],
        },
      ],
    }),
    seen: async () => (await (await fetch(`${url}/seen`)).json()) as never,
    close: async () => {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
