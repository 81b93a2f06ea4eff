/**
 * Static checks: types, lint, and dead code. A check that passed is not repeated for the same
 * files, and the type checker checks only files that a change can affect.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { cacheFolder, hashOf, once } from './support/structure/once.ts'
import { root } from './support/structure/sources.ts'

const run = promisify(execFile)
/**
 * A hash that identifies this clone. Clones may share a folder of packages, but need separate build
 * information for the type checker.
 */
const clone = createHash('sha256').update(root).digest('hex').slice(0, 12)
const types = (name: string) => [
  // A single thread uses the least processor time while other tests run.
  '--singleThreaded',
  '--incremental',
  '--tsBuildInfoFile',
  join(cacheFolder, `${name}-${clone}.tsbuildinfo`),
]
const hash = hashOf(root)
/**
 * Settings that minimize processor time, even if a check takes longer. The type checker, a Go
 * program, runs without garbage collection (1.4 GB of memory instead of 1.2 GB), and the linter
 * with one thread.
 */
const env = { ...process.env, GOGC: 'off', RAYON_NUM_THREADS: '1' }

/** The folders of the programs that have their own type-checker settings, by program name. */
const programs = {
  program: '.',
  chat: 'client/chat',
  console: 'console',
  'console-tests': 'test/console',
}

for (const [what, name, ...args] of [
  ...Object.entries(programs).map(
    ([program, folder]) =>
      [
        `the type checker of ${folder}`,
        'typescript-native/bin/tsc',
        ...types(program),
        '-p',
        folder,
      ] as const,
  ),
  ['the linter', '.bin/biome', 'check', '.'],
  ['the search for dead code', '.bin/knip', '--no-progress'],
] as const) {
  t.test(`${what} finds nothing`, { timeout: 120_000 }, async (t) => {
    const check = () =>
      run(join(root, 'node_modules', name), args, { cwd: root, env, maxBuffer: 2 ** 24 }).then(
        () => '',
        (error: Error & { stdout?: string; stderr?: string }) =>
          `${error.stdout ?? ''}${error.stderr ?? ''}` || error.message,
      )
    t.equal(await once(what, check, () => hash), '')
  })
}

t.test('a check is repeated after a change, and after a failure', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-once-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const [project, passes] = [join(folder, 'project'), join(folder, 'passes')]
  mkdirSync(join(project, 'a/b'), { recursive: true })
  const write = (path: string, text: string) => writeFileSync(join(project, path), text)
  let runs = 0
  let found = ''
  const check = (name = 'check') =>
    once(
      name,
      async () => {
        runs++
        return found
      },
      () => hashOf(project),
      passes,
    )
  write('a/b/c.ts', 'one')
  found = 'a fault'
  t.equal(await check(), 'a fault')
  t.equal(await check(), 'a fault', 'a failure is not recorded')
  t.equal(runs, 2)
  found = ''
  t.equal(await check(), '')
  t.equal(await check(), '')
  t.equal(runs, 3, 'a pass is recorded')
  await check('another check')
  t.equal(runs, 4)
  write('a/b/c.ts', 'two')
  await check()
  t.equal(runs, 5, 'the content of a file changed')
  write('a/d.json', '{}')
  found = 'a new fault'
  t.equal(await check(), 'a new fault', 'a file was added')
  t.equal(runs, 6)
})
