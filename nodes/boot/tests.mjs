/**
 * `npm test`: runs all test files, or the named ones, and ends with `N passed, N failed`. The files
 * use tap, but node runs them without tap's own runner, which adds a TypeScript compiler to each
 * process. Most files share processes: twelve scenarios take 78 s of processor time in separate
 * processes, and 21 s in one (two cores, 2026-11-21). A run of many files bundles them first
 * (test-bundle.mjs).
 */
import { spawn, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { CPU_ENV, createCpuTable } from './cpu.mjs'
import { MEMORY, programOf } from './program.mjs'
import { createReader } from './tap.mjs'
import { BUNDLE_ENV, bundleTests } from './test-bundle.mjs'
import { testsOf, unitTestsOf } from './test-files.mjs'
import { runSchedule, scheduleOf } from './test-schedule.mjs'

/** The minimum number of files for which bundling saves processor time. */
const BUNDLED = 12
/** Matches the line that reports the end of a file in a shared process. */
const OVER = /^(?:not )?ok \d+ - the end of (\S+)/
/**
 * The default maximum duration of a file, and the grace period after it, both in seconds. During
 * the grace period the process can report what keeps it alive; then it is killed.
 */
const LIMIT = 300
const GRACE = 5
/** A module that each process preloads. On SIGTERM, it reports what keeps the process alive. */
const TELL =
  'data:text/javascript,' +
  encodeURIComponent(
    "process.on('SIGTERM', () => " +
      "console.log('# still open: ' + process.getActiveResourcesInfo().join(', ')))",
  )
/** A nonexistent path, which keeps unit tests from starting a NATS server. */
const NO_SERVER = '/nonexistent/nats-server'
const TOGETHER_MODULE = fileURLToPath(new URL('../../test/together.mjs', import.meta.url))
const signals = /** @type {const} */ (['SIGINT', 'SIGTERM'])

/** @typedef {import('./test-schedule.mjs').Process} Process */

/**
 * Prepares what tests of services need: the nats-server binary and the bundle of the program.
 * Without the bundle, each of the first tests that start the program would build it.
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
 * @param {readonly string[]} args files and folders, `--unit` for only the unit tests among them,
 * `--jobs=N` for the number of concurrent processes, `--timeout=N` for the seconds that a file may
 * take (0: unlimited), `--cpu` for a table of the processor time of each file
 * @param {string} loader module that loads TypeScript
 * @returns {Promise<number>} the exit code: 0 when something ran and nothing failed
 */
export async function runTests(root, args, loader) {
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
  const server = unit ? NO_SERVER : prepareServices(root, loader)
  if (server === undefined) return 1
  /**
   * @param {string} name
   * @param {number} otherwise
   */
  const option = (name, otherwise) => {
    const given = Number(
      args.findLast((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3) || Number.NaN,
    )
    return given >= 0 ? given : otherwise
  }
  // Unit tests only compute. Other tests also wait, so one extra process keeps all processors busy.
  const jobs = option('jobs', 0) || availableParallelism() + (unit ? 0 : 1)
  const seconds = option('timeout', LIMIT)
  const schedule = scheduleOf(files, {
    ...(unit && { most: jobs }),
    separate: !unit && !cpu && named.length > 0,
  })
  const bundle = files.length < BUNDLED ? undefined : await bundleTests(root, files)
  const reader = createReader((line) => void process.stdout.write(`${line}\n`))
  const env = {
    ...process.env,
    BATON_NATS_SERVER: server,
    TAP_TIMEOUT: String(seconds),
    ...(cpu && { [CPU_ENV]: '1' }),
    ...(bundle !== undefined && { [BUNDLE_ENV]: bundle }),
  }
  /** @type {Set<import('node:child_process').ChildProcess>} */
  const running = new Set()
  let stopped = false

  /**
   * Reports a file as a test that contains the tests of the file.
   * @param {string} name
   * @param {readonly string[]} lines
   * @param {string} why how its process failed; empty if the result depends only on its tests
   * @param {number} began
   * @returns {boolean} whether the file passed
   */
  const tell = (name, lines, why, began) => {
    const sound = why === '' && !lines.some((line) => /^not ok\b(?!.*# (?:skip|todo))/i.test(line))
    for (const line of [
      `# Subtest: ${name}`,
      ...lines.map((line) => `    ${line}`),
      `${sound ? 'ok' : 'not ok'} 1 - ${name}${why && ` (${why})`} # time=${(performance.now() - began).toFixed(0)}ms`,
    ])
      reader.line(line)
    return sound
  }
  /**
   * Runs the files of a process.
   * @param {Process} process
   * @returns {Promise<void>}
   */
  const run = async ({ name, files }) => {
    let began = performance.now()
    const child = spawn(
      process.execPath,
      [
        ...(unit ? MEMORY : []),
        `--import=${TELL}`,
        bundle === undefined ? `--import=${loader}` : '--enable-source-maps',
        TOGETHER_MODULE,
        ...files,
      ],
      { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], env },
    )
    running.add(child)
    const ended = new Promise(
      (resolve) => void child.once('close', (code, signal) => resolve(signal ?? code)),
    )
    let late = false
    /** @type {NodeJS.Timeout | undefined} */
    let limit
    const watch = () => {
      clearTimeout(limit)
      if (seconds > 0)
        limit = setTimeout(() => {
          late = true
          child.kill('SIGTERM')
          setTimeout(() => child.kill('SIGKILL'), GRACE * 1000).unref()
        }, seconds * 1000)
    }
    watch()
    /** @type {string[]} */
    let lines = []
    let left = files.length
    let sound = true
    for await (const line of createInterface({
      input: child.stdout,
      crlfDelay: Number.POSITIVE_INFINITY,
    })) {
      lines.push(line)
      cpu?.add(line)
      const over = OVER.exec(line)?.[1]
      // A line of this form may also be the name of a test.
      if (!over || !files.includes(over)) continue
      sound = tell(over, lines, '', began) && sound
      lines = []
      left--
      began = performance.now()
      watch()
    }
    const how = await ended
    clearTimeout(limit)
    running.delete(child)
    if (stopped) return
    if (late)
      for (const line of lines)
        if (line.startsWith('# still open')) process.stdout.write(`${line}\n`)
    const why = late ? `it took longer than ${seconds} s` : how === 0 ? '' : `it ended with ${how}`
    // The files of a shared process were reported when they ended. The process itself is reported
    // only if some of its files did not end, or if it failed although all of them passed.
    if (left > 0 || (how !== 0 && sound))
      tell(
        left > 0 && files.length > 1 ? `${name}: ${files[files.length - left]}` : name,
        lines,
        why,
        began,
      )
  }
  const stop = (/** @type {NodeJS.Signals} */ signal) => {
    stopped = true
    for (const child of running) child.kill(signal)
  }
  for (const signal of signals) process.on(signal, stop)
  await runSchedule(schedule, jobs, async (process) => {
    if (!stopped) await run(process)
  })
  for (const signal of signals) process.off(signal, stop)
  if (bundle !== undefined) rmSync(bundle, { recursive: true, force: true })
  if (cpu) process.stdout.write(`\n${cpu.table()}\n`)
  const { passed, failed, skipped } = reader.result
  process.stdout.write(
    `\n${files.length} files${skipped > 0 ? `, ${skipped} skipped` : ''}\n${passed} passed, ${failed} failed\n`,
  )
  return !stopped && failed === 0 && passed > 0 ? 0 : 1
}
