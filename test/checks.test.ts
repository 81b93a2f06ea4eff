/** Static checks: types, lint, and dead code. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'

const root = join(import.meta.dirname, '..')
const run = promisify(execFile)

for (const [name, ...args] of [
  ['tsc'],
  ['tsc', '-p', 'client/chat'],
  ['biome', 'check', '.'],
  ['knip', '--no-progress'],
] as const) {
  t.test(`${[name, ...args].join(' ')} finds nothing`, { timeout: 120_000 }, async (t) => {
    const found = await run(join(root, 'node_modules', '.bin', name), args, {
      cwd: root,
      maxBuffer: 2 ** 24,
    }).then(
      () => '',
      (error: { stdout?: string; stderr?: string }) => `${error.stdout ?? ''}${error.stderr ?? ''}`,
    )
    t.equal(found, '')
  })
}
