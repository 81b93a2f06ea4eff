/**
 * The entry point: when packages count as installed, how results are counted, which files are unit
 * tests, when changed files trigger a run, and the options of the tests.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'

interface Dependencies {
  compareLocks(locked: object, installed: object): string
  uncompiledPackages(root: string, locked: object): readonly string[]
}
interface Tap {
  createReader(show: (line: string) => void): {
    result: { failed: number }
    failures: readonly string[][]
    line(line: string): void
  }
  describeFailures(failures: readonly string[][], total: number): string
}
const { compareLocks, uncompiledPackages } = (await import(
  '../../../nodes/boot/dependencies.mjs' as string
)) as Dependencies
const { testsOf, unitTestsOf } = (await import('../../../nodes/boot/test-files.mjs' as string)) as {
  testsOf(root: string, names: readonly string[]): string[]
  unitTestsOf(root: string, names: readonly string[]): string[]
}
interface Changes {
  start(): Promise<void>
  changed(file: string): void
}
const { createChanges, describeChanges } = (await import(
  '../../../nodes/boot/watch.mjs' as string
)) as {
  createChanges(
    run: (files: readonly string[]) => Promise<unknown>,
    options: { changedDuringRun(): void; later(then: () => void): () => void },
  ): Changes
  describeChanges(files: readonly string[]): string
}
const root = join(import.meta.dirname, '../../..')
const { createReader, describeFailures } = (await import(
  '../../../nodes/boot/tap.mjs' as string
)) as Tap

t.test('packages count as installed if npm recorded the locked versions', async (t) => {
  const locked = {
    '': { version: '0' },
    'node_modules/a': { version: '1' },
    'node_modules/d': { version: '2', dev: true },
    'node_modules/o': { version: '3', optional: true },
  }
  t.equal(
    compareLocks(locked, {
      'node_modules/a': { version: '1' },
      'node_modules/d': { version: '2' },
    }),
    'all',
  )
  t.equal(compareLocks(locked, { 'node_modules/a': { version: '1' } }), 'production')
  t.equal(
    compareLocks(locked, {
      'node_modules/a': { version: '2' },
      'node_modules/d': { version: '2' },
    }),
    'stale',
  )
})

t.test('native packages without a compiled file for this Node.js must be compiled', (t) => {
  const { platform, arch, versions } = process
  const binary = join(
    root,
    `node_modules/uWebSockets.js/uws_${platform}_${arch}_${versions.modules}.node`,
  )
  const folder = t.testdir({
    node_modules: {
      compiled: {
        'binding.gyp': '',
        build: { Release: { 'compiled.node': t.fixture('symlink', binary) } },
      },
      outdated: {
        'binding.gyp': '',
        build: { Release: { 'outdated.node': 'of another Node.js' } },
      },
      interrupted: { 'binding.gyp': '', build: { Release: { 'obj.target': {} } } },
      fresh: { 'binding.gyp': '' },
      script: {},
      plain: { 'binding.gyp': '' },
    },
  })
  const locked = {
    '': {},
    'node_modules/compiled': { hasInstallScript: true },
    'node_modules/outdated': { hasInstallScript: true },
    'node_modules/interrupted': { hasInstallScript: true },
    'node_modules/fresh': { hasInstallScript: true },
    'node_modules/script': { hasInstallScript: true },
    'node_modules/absent': { hasInstallScript: true },
    'node_modules/plain': {},
  }
  t.strictSame(uncompiledPackages(folder, locked), [
    'node_modules/outdated',
    'node_modules/interrupted',
    'node_modules/fresh',
  ])
  t.end()
})

const read = (text: string) => {
  const shown: string[] = []
  const reader = createReader((line) => void shown.push(line))
  for (const line of text.split('\n')) reader.line(line)
  return { result: reader.result, shown: shown.join('\n') }
}

t.test('assertions are counted, containers are not', async (t) => {
  const { result, shown } = read(`TAP version 14
# Subtest: test/a.test.ts
    # Subtest: outer
        ok 1 - one
        ok noise of the program
        not ok 2 - two
          ---
          expected: ok 1 - this is a diagnosis
          ...
        ok 3 - later # SKIP
        not ok 4 - some day # TODO
        1..4
    not ok 1 - outer # time=3ms
      ---
      at: here
      ...
    1..1
not ok 1 - test/a.test.ts # time=5ms

# Subtest: test/b.test.ts
    ok 1 - fine
    1..1
ok 2 - test/b.test.ts # time=1ms
1..2`)
  t.match(result, { passed: 3, failed: 1, skipped: 2, files: 2 })
  t.match(
    shown,
    /✗ test\/a.test.ts › outer › two\n +---\n +expected[\s\S]*✗ test\/a.test.ts \(5ms\)\n✓ test\/b.test.ts/,
  )
  t.notMatch(shown, /at: here/)
})

t.test('a comment about a failure is shown and repeated with it', async (t) => {
  const shown: string[] = []
  const reader = createReader((line) => void shown.push(line))
  for (const line of [
    '# failed page: of no failure',
    '    not ok 1 - broken',
    '    # failed page: /p/default',
    '    # other comment',
    'not ok 1 - test/a.test.ts',
  ])
    reader.line(line)
  t.strictSame(shown.slice(1), ['failed page: /p/default', '✗ test/a.test.ts'])
  t.equal(reader.failures[0]?.at(-1), 'failed page: /p/default')
})

t.test('a file that failed without a failed assertion counts as failed', async (t) => {
  const { result, shown } = read(
    '# Subtest: test/a.test.ts\n    ok 1 - fine\n    1..1\n' +
      'not ok 1 - test/a.test.ts # time=1ms\n  ---\n  exitCode: 3\n  ...\n1..1',
  )
  t.match(result, { passed: 1, failed: 1, files: 1 })
  t.match(shown, /exitCode: 3/)
})

t.test('the failures of a run can be repeated at its end', async (t) => {
  const reader = createReader(() => {})
  for (const line of [
    '# Subtest: test/a.test.ts',
    ...Array.from({ length: 25 }, (_, at) => [
      `    not ok ${at + 1} - number ${at}`,
      '      ---',
      ...Array.from({ length: 60 }, (_, line) => `      line ${line}`),
      '      ...',
    ]).flat(),
    '    1..25',
    '# failed page: too late for the failures that are repeated',
    'not ok 1 - test/a.test.ts # time=1ms',
  ])
    reader.line(line)
  const lines = describeFailures(reader.failures, reader.result.failed).split('\n')
  t.equal(lines[0], '✗ test/a.test.ts › number 0')
  t.equal(lines[2], '      line 0', 'with its diagnosis')
  t.equal(lines[40], '✗ test/a.test.ts › number 1', 'of a limited length')
  t.equal(lines.length, 20 * 40 + 1)
  t.equal(lines.at(-1), '… and 5 more, shown above.')
})

t.test('a folder expands to the test files below it, each once', async (t) => {
  const found = testsOf(root, ['test/chaos', 'test/chaos/check.test.ts', 'test/missing.test.ts'])
  t.ok(found.includes('test/chaos/check.test.ts'))
  t.ok(found.includes('test/missing.test.ts'), 'a missing file is named, and fails when it runs')
  t.ok(found.every((name) => name.endsWith('.test.ts')))
  t.equal(new Set(found).size, found.length)
})

t.test('unit tests are selected by folder, and a named file must be one', async (t) => {
  const units = unitTestsOf(root, ['test'])
  t.ok(units.length > 100)
  t.ok(units.includes('test/actors/runs/start.test.ts'))
  t.strictSame(
    unitTestsOf(root, ['test/client']),
    units.filter((file) => file.startsWith('test/client/')),
  )
  t.strictSame(unitTestsOf(root, ['test/views/view.test.ts']), ['test/views/view.test.ts'])
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const checked = String(scripts.check).match(/test\/\S+\.test\.ts/g) ?? []
  t.ok(checked.length > 5)
  t.strictSame(unitTestsOf(root, checked), checked, '`npm run check` names them')
  t.notOk(units.includes('test/circles.test.ts'), 'the structure is tested only by name')
  t.throws(() => unitTestsOf(root, ['test/client/follow-channel.test.ts']), /starts a service/)
  t.throws(() => unitTestsOf(root, ['test/scenarios/runs/runs.test.ts']), /no unit test/)
})

/** Modules that start nats-server or a service. */
const STARTS = new RegExp(
  [
    '^nodes/(node\\.ts|nats/server/)',
    '^test/(support/service|scenarios/|chaos/(.*/)?stack|nodes/support/plain-server)',
  ].join('|'),
)
const imports = new Map<string, readonly string[]>()
function importsOf(file: string): readonly string[] {
  const known = imports.get(file)
  if (known) return known
  const text = readFileSync(join(root, file), 'utf8')
  const found = [...text.matchAll(/\b(?:from|import)\s*\(?\s*['"](\.[^'"]+\.(?:ts|mjs))['"]/g)]
    .map(([, name = '']) => join(dirname(file), name))
    .filter((name) => existsSync(join(root, name)))
  imports.set(file, found)
  return found
}
/**
 * Returns the chain of imports from a file to one that starts a server or a service. Returns an
 * empty array if there is no such chain.
 */
function chainOf(file: string): readonly string[] {
  const from = new Map<string, string | undefined>([[file, undefined]])
  for (const at of from.keys()) {
    if (at !== file && STARTS.test(at)) {
      const chain: string[] = []
      for (let step: string | undefined = at; step; step = from.get(step)) chain.unshift(step)
      return chain
    }
    for (const next of importsOf(at)) if (!from.has(next)) from.set(next, at)
  }
  return []
}

t.test('no unit test imports what starts nats-server or a service', async (t) => {
  for (const file of unitTestsOf(root, ['test'])) t.strictSame(chainOf(file), [], file)
  for (const file of ['test/client/follow-channel.test.ts', 'test/nodes/nats/nats.test.ts'])
    t.ok(chainOf(file).length > 1, `${file} is found`)
})

/** Creates a watcher of changes. The test ends the debounce interval and each run. */
function manualChanges() {
  const runs: (readonly string[])[] = []
  let interrupted = 0
  let quiet: (() => void) | undefined
  let end = () => {}
  const changes = createChanges(
    (files) => {
      runs.push(files)
      return new Promise<void>((resolve) => {
        end = resolve
      })
    },
    {
      changedDuringRun: () => void interrupted++,
      later: (then) => {
        quiet = then
        return () => {
          quiet = undefined
        }
      },
    },
  )
  return {
    ...changes,
    runs,
    interrupted: () => interrupted,
    /** Ends the debounce interval. Returns whether changes were waiting for its end. */
    pass() {
      const due = quiet
      quiet = undefined
      due?.()
      return due !== undefined
    },
    async end() {
      end()
      await new Promise(setImmediate)
    },
  }
}

t.test('changes that arrive together cause one run', async (t) => {
  const changes = manualChanges()
  changes.changed('b.ts')
  changes.changed('a.ts')
  changes.changed('b.ts')
  t.ok(changes.pass())
  t.strictSame(changes.runs, [['a.ts', 'b.ts']])
  await changes.end()
  t.notOk(changes.pass(), 'nothing changed since')
})

t.test('a change during a run causes another run after it', async (t) => {
  const changes = manualChanges()
  void changes.start()
  t.strictSame(changes.runs, [[]], 'the first run needs no change')
  changes.changed('a.ts')
  t.equal(changes.interrupted(), 1)
  t.notOk(changes.pass(), 'runs do not overlap')
  await changes.end()
  t.ok(changes.pass())
  t.strictSame(changes.runs, [[], ['a.ts']])
})

t.test('the first changed files are listed', async (t) => {
  t.equal(describeChanges(['a.ts', 'b.ts']), 'changed: a.ts, b.ts')
  t.equal(describeChanges(['a', 'b', 'c', 'd', 'e', 'f', 'g']), 'changed: a, b, c, d, e and 2 more')
})

t.test(
  'the tests show their options, and refuse unknown ones before they run anything',
  async (t) => {
    const run = (option: string) =>
      spawnSync(process.execPath, ['nodes/boot.mjs', 'test', option], {
        cwd: root,
        encoding: 'utf8',
      })
    t.match(run('--help'), { status: 0, stdout: /^npm test -- .*--timeout=N/s })
    for (const option of ['--tmeout=3', '--jobs=two', '-x'])
      t.match(run(option), {
        status: 1,
        stdout: '',
        stderr: new RegExp(`^Unknown option ${option}\\.\\n\\nnpm test -- `),
      })
  },
)
