/**
 * `npm test`: runs all test files, or the named ones, and ends with `N passed, N failed`. The files
 * use tap, but node runs them without tap's own runner, which adds a TypeScript compiler to each
 * process. Files share processes: twelve scenarios take 78 s of processor time in separate
 * processes, and 21 s in one (two cores, 2026-11-21). A run of many files bundles them first
 * (test-bundle.mjs).
 */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CPU_ENV, createCpuTable } from './cpu.mjs'
import { MEMORY, programOf } from './program.mjs'
import { createReader, describeFailures } from './tap.mjs'
import { BUNDLE_ENV, bundleTests } from './test-bundle.mjs'
import { testsOf, unitTestsOf } from './test-files.mjs'
import { startProcess } from './test-process.mjs'
import { runSchedule, scheduleOf, startsNoProgram } from './test-schedule.mjs'

/** Minimum number of files for which bundling saves processor time. */
const MIN_BUNDLED_FILES = 12
/** Default time limit of a file in seconds. */
const LIMIT_SECONDS = 300
/** A module that each process preloads. On SIGTERM, it reports what keeps the process alive. */
const EXIT_REPORTER =
  'data:text/javascript,' +
  encodeURIComponent(
    "process.on('SIGTERM', () => " +
      "console.log('# still open: ' + process.getActiveResourcesInfo().join(', ')))",
  )
/** A nonexistent path, which keeps unit tests from starting a NATS server. */
const NO_SERVER = '/nonexistent/nats-server'
const TOGETHER_MODULE = fileURLToPath(new URL('../../test/together.mjs', import.meta.url))
const signals = /** @type {const} */ (['SIGINT', 'SIGTERM'])
const usage = `npm test -- [options] [files and folders]

Runs the test files, or all of them, and ends with "N passed, N failed".

  --unit         only the tests that need no NATS server and no service
  --jobs=N       number of concurrent processes
  --timeout=N    seconds that a file may take; 0: unlimited (default: ${LIMIT_SECONDS})
  --cpu          a table of the processor time of each file
  -h, --help     show this help
`
const OPTION = /^--(unit|cpu|(jobs|timeout)=\d+)$/

/**
 * Prepares the prerequisites of tests that start services: the nats-server binary and the bundle of
 * the program. Without the bundle, each of the first tests that start the program would build it.
 * @param {string} root
 * @param {string} loader
 * @returns {string | undefined} the path of nats-server; undefined when it cannot be found
 */
function prepareServices(root, loader) {
  const finder = [`--import=${loader}`, join(root, 'nodes/nats/server/install.ts')]
  const server = spawnSync(process.execPath, finder, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (server.status !== 0) return undefined
  programOf(root, loader)
  return server.stdout.trim()
}

/**
 * Runs the tests.
 * @param {string} root folder of the project
 * @param {readonly string[]} args options, files and folders, as `usage` describes them
 * @param {string} loader module that loads TypeScript
 * @param {{ packages: readonly string[], compile(): Promise<void> }} [native] packages that must be
 *   compiled, while tests that do not load them run
 * @returns {Promise<number>} the exit code: 0 when something ran and nothing failed
 */
export async function runTests(root, args, loader, native) {
  const unknown = args.find((arg) => arg.startsWith('-') && !OPTION.test(arg))
  if (unknown === '--help' || unknown === '-h') {
    process.stdout.write(usage)
    return 0
  }
  if (unknown !== undefined) {
    process.stderr.write(`Unknown option ${unknown}.\n\n${usage}`)
    return 1
  }
  const unit = args.includes('--unit')
  const cpu = args.includes('--cpu') ? createCpuTable() : undefined
  const named = args.filter((arg) => !arg.startsWith('-'))
  /** @type {string[]} */
  let files
  try {
    files = (unit ? unitTestsOf : testsOf)(root, named.length > 0 ? named : ['test'])
  } catch (error) {
    process.stderr.write(`${/** @type {Error} */ (error).message}\n`)
    return 1
  }
  // A failure is handled below, where the result is awaited.
  const compiled = native?.compile().then(
    () => undefined,
    (/** @type {Error} */ error) => error,
  )
  const server = unit ? NO_SERVER : prepareServices(root, loader)
  if (server === undefined) return 1
  /**
   * @param {string} name
   * @param {number} otherwise
   */
  const option = (name, otherwise) => {
    const given = args.findLast((arg) => arg.startsWith(`--${name}=`))
    return given === undefined ? otherwise : Number(given.slice(name.length + 3))
  }
  // Tests other than unit tests spend part of their time waiting, so one extra process keeps all
  // processors busy.
  const jobs = option('jobs', 0) || availableParallelism() + (unit ? 0 : 1)
  const seconds = option('timeout', LIMIT_SECONDS)
  const separate = !unit && !cpu && named.length > 0
  const bundle = files.length < MIN_BUNDLED_FILES ? undefined : await bundleTests(root, files)
  const reader = createReader((line) => void process.stdout.write(`${line}\n`))
  const env = {
    ...process.env,
    BATON_NATS_SERVER: server,
    TAP_TIMEOUT: String(seconds),
    ...(cpu && { [CPU_ENV]: '1' }),
    ...(bundle !== undefined && { [BUNDLE_ENV]: bundle.folder }),
  }
  /** @type {Set<ReturnType<typeof startProcess>>} */
  const running = new Set()
  let stopped = false

  /**
   * Reports a file as one test, with the tests of the file as its subtests.
   * @param {string} name
   * @param {readonly string[]} lines
   * @param {string} why how its process failed; empty if the result depends only on its tests
   * @param {number} began
   * @returns {boolean} whether the file passed
   */
  const report = (name, lines, why, began) => {
    if (stopped) return true
    const hasPassed =
      why === '' && !lines.some((line) => /^not ok\b(?!.*# (?:skip|todo))/i.test(line))
    const duration = (performance.now() - began).toFixed(0)
    for (const line of [
      `# Subtest: ${name}`,
      ...lines.map((line) => `    ${line}`),
      `${hasPassed ? 'ok' : 'not ok'} 1 - ${name}${why && ` (${why})`} # time=${duration}ms`,
    ])
      reader.line(line)
    return hasPassed
  }
  const ofNode = [
    ...MEMORY,
    `--import=${EXIT_REPORTER}`,
    bundle === undefined ? `--import=${loader}` : '--enable-source-maps',
    TOGETHER_MODULE,
  ]
  const line = (/** @type {string} */ text) => cpu?.add(text)
  const open = () => {
    if (stopped) return { run: async () => false, end: async () => {} }
    const child = startProcess({ args: ofNode, cwd: root, env, seconds, line, report })
    running.add(child)
    return {
      run: async (/** @type {string} */ file) => !stopped && (await child.run(file)) && !stopped,
      end: () => child.end().finally(() => running.delete(child)),
    }
  }
  const stop = (/** @type {NodeJS.Signals} */ signal) => {
    stopped = true
    for (const child of running) child.kill(signal)
  }
  for (const signal of signals) process.on(signal, stop)
  const needsNative = (/** @type {string} */ file) =>
    !startsNoProgram(file) || native?.packages.some((name) => bundle?.loads(file, name) !== false)
  const held = compiled && {
    files: new Set(files.filter(needsNative)),
    until: compiled.then((error) => {
      if (error === undefined) return
      process.stderr.write(`${error.message}\n`)
      stop('SIGTERM')
    }),
  }
  await runSchedule(scheduleOf(files), {
    slots: jobs,
    open,
    ...(separate && { together: 1 }),
    ...(held && { held }),
  })
  for (const signal of signals) process.off(signal, stop)
  if (bundle !== undefined) rmSync(bundle.folder, { recursive: true, force: true })
  if (cpu) process.stdout.write(`\n${cpu.table()}\n`)
  const { passed, failed, skipped } = reader.result
  // A long run has shown them between thousands of lines, which a CI system may have cut off.
  if (failed > 0 && files.length > 1)
    process.stdout.write(`\nFailures:\n\n${describeFailures(reader.failures, failed)}\n`)
  process.stdout.write(
    `\n${files.length} files${skipped > 0 ? `, ${skipped} skipped` : ''}\n${passed} passed, ${failed} failed\n`,
  )
  return !stopped && failed === 0 && passed > 0 ? 0 : 1
}
