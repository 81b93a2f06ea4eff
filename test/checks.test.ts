/** Static checks: types, lint, and dead code. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'

const root = join(import.meta.dirname, '..')
const run = promisify(execFile)

// A single thread uses the least processor time while other tests run.
for (const [name, ...args] of [
  ['typescript-native/bin/tsc', '--singleThreaded'],
  ['typescript-native/bin/tsc', '--singleThreaded', '-p', 'client/chat'],
  ['typescript-native/bin/tsc', '--singleThreaded', '-p', 'console'],
  ['typescript-native/bin/tsc', '--singleThreaded', '-p', 'test/console'],
  ['.bin/biome', 'check', '.'],
  ['.bin/knip', '--no-progress'],
] as const) {
  t.test(`${[name, ...args].join(' ')} finds nothing`, { timeout: 120_000 }, async (t) => {
    const found = await run(join(root, 'node_modules', name), args, {
      cwd: root,
      maxBuffer: 2 ** 24,
    }).then(
      () => '',
      (error: { stdout?: string; stderr?: string }) => `${error.stdout ?? ''}${error.stderr ?? ''}`,
    )
    t.equal(found, '')
  })
}
