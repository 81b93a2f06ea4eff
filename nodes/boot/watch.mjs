/**
 * `npm run test:watch`: runs tests, and runs them again when a source file changes. Changes that
 * arrive together cause one run. A change interrupts a run of unit tests. Other tests run to
 * completion first, because they have to stop the servers that they started.
 */
import { spawn } from 'node:child_process'
import { readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { notUnit, testsOf } from './test-files.mjs'

/** Folders whose subfolders are watched as well. */
const DEEP = ['protocol', 'actors', 'gateway', 'views', 'nodes', 'client', 'test']
/** Folders whose subfolders are not watched. */
const FLAT = ['.', 'bench', 'docs']
const SOURCE = /\.([mc]?[jt]s|json|md|txt|ya?ml)$/
/** Time without a further change before a run starts. */
const QUIET_MS = 200
/** Maximum number of changed files that are printed. */
const MAX_SHOWN = 5

/**
 * Collects changed files, and calls `run` with them when no further file has changed for a while.
 * Runs never overlap.
 * @param {(files: readonly string[]) => Promise<unknown>} run
 * @param {object} options
 * @param {() => void} options.changedDuringRun called at each change while `run` is under way
 * @param {(then: () => void) => () => void} options.later calls `then` after the quiet time;
 *   returns a function that cancels the call
 * @returns {{ start: () => Promise<void>, changed: (file: string) => void }} `start` begins a run
 *   immediately; `changed` records a changed file
 * @public
 */
export function createChanges(run, { changedDuringRun, later }) {
  /** @type {Set<string>} */
  const changed = new Set()
  let running = false
  let cancel = () => {}
  const schedule = () => {
    cancel()
    cancel = later(() => void start())
  }
  const start = async () => {
    const files = [...changed].sort()
    changed.clear()
    running = true
    await run(files)
    running = false
    if (changed.size > 0) schedule()
  }
  return {
    start,
    changed: (file) => {
      changed.add(file)
      if (running) changedDuringRun()
      else schedule()
    },
  }
}

/**
 * Returns a line that lists changed files.
 * @param {readonly string[]} files
 * @public
 */
export const describeChanges = (files) => {
  const more = files.length - MAX_SHOWN
  return `changed: ${files.slice(0, MAX_SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/**
 * Returns the folders in docs/ that contain documents, without those of the site generator.
 * @param {string} root
 */
const documentsIn = (root) =>
  readdirSync(join(root, 'docs'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !/^\.|^node_modules$/.test(entry.name))
    .map((entry) => join('docs', entry.name))

/**
 * @param {(line: string) => void} show
 * @param {string} root
 * @param {(file: string) => void} changed
 */
function watchSources(show, root, changed) {
  for (const folder of [...DEEP, ...FLAT, ...documentsIn(root)]) {
    const watcher = watch(join(root, folder), { recursive: DEEP.includes(folder) })
    watcher.on('change', (_, name) => {
      const file = join(folder, String(name))
      if (SOURCE.test(file)) changed(file)
    })
    watcher.on('error', (error) => show(`${folder} is no longer watched: ${error.message}`))
  }
}

/**
 * Runs the unit tests, or the named tests, now and after every change, until Ctrl-C. If every named
 * file is a unit test and every named folder contains unit tests, only the unit tests run.
 * Otherwise all named tests run.
 * @param {string} root folder of the project
 * @param {readonly string[]} args of `npm test`: files, folders and options
 * @param {(line: string) => void} show
 * @returns {Promise<void>} resolves at Ctrl-C, when the current run has ended
 */
export function watchTests(root, args, show) {
  const named = args.filter((arg) => !arg.startsWith('-'))
  const isUnit = (/** @type {string} */ file) => notUnit(file) === undefined
  const unit = named.every((name) => testsOf(root, [name]).some(isUnit))
  const command = [
    fileURLToPath(new URL('../boot.mjs', import.meta.url)),
    'test',
    ...(unit ? ['--unit'] : []),
    ...args,
  ]
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child
  let ended = false
  return new Promise((resolve) => {
    const run = async () => {
      const started = spawn(process.execPath, command, { cwd: root, stdio: 'inherit' })
      child = started
      await new Promise((done) => void started.once('close', done))
      child = undefined
      if (ended) resolve()
      else show('\nWaiting for changes; Ctrl-C ends.')
    }
    const changes = createChanges(
      (files) => {
        if (files.length > 0) show(`\n${describeChanges(files)}`)
        return run()
      },
      {
        changedDuringRun: () => {
          if (unit) child?.kill('SIGINT')
        },
        later: (then) => {
          const timer = setTimeout(then, QUIET_MS)
          return () => clearTimeout(timer)
        },
      },
    )
    watchSources(show, root, changes.changed)
    process.on('SIGINT', () => {
      ended = true
      if (child) child.kill('SIGINT')
      else resolve()
    })
    void changes.start()
  })
}
