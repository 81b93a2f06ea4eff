/**
 * A process that runs test files one after the other, with test/together.mjs. Each file has a
 * limited time. A file ends when the process prints `the end of <file>`, or when the process ends.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** Environment variable that makes test/together.mjs read the names of files from descriptor 3. */
export const FILES_ENV = 'BATON_TEST_FILES'
/** Matches the line that reports the end of a file. */
const OVER = /^(?:not )?ok \d+ - the end of (\S+)/
/**
 * Seconds after the time limit in which the process can report what keeps it alive; then it is
 * killed.
 */
const GRACE = 5

/**
 * @typedef {object} Options
 * @property {readonly string[]} args arguments of node
 * @property {string} cwd
 * @property {NodeJS.ProcessEnv} env
 * @property {number} seconds that a file may take; 0: unlimited
 * @property {(line: string) => void} line receives each line of output
 * @property {(name: string, lines: readonly string[], why: string, began: number) => boolean} tell
 *   reports a file with its output. `why` states how its process failed, and is empty if the result
 *   depends only on the tests. Returns whether the file passed.
 */

/**
 * Starts a process.
 * @param {Options} options
 * @returns {import('./test-schedule.mjs').TestProcess & { kill(signal: NodeJS.Signals): void }}
 */
export function startProcess({ args, cwd, env, seconds, line: heard, tell }) {
  const child = spawn(process.execPath, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    env: { ...env, [FILES_ENV]: '1' },
  })
  const names = /** @type {import('node:stream').Writable} */ (child.stdio[3])
  // Writing to a process that has ended fails. The end of the process is reported elsewhere
  // (`finish`).
  names.on('error', () => {})
  let late = false
  let dead = false
  const ended = new Promise(
    (resolve) =>
      void child.once('close', (code, signal) => {
        dead = true
        resolve(signal ?? code)
      }),
  )
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
  let began = performance.now()
  /** The file that is running. */
  let file = ''
  /** The last file that ran. */
  let last = ''
  /** Whether all files that ended have passed. */
  let sound = true
  let told = false
  /** @type {string[]} */
  let lines = []
  let over = () => {}
  createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY }).on(
    'line',
    (line) => {
      lines.push(line)
      heard(line)
      // A line of this form may also be the name of a test.
      if (file === '' || OVER.exec(line)?.[1] !== file) return
      sound = tell(file, lines, '', began) && sound
      lines = []
      file = ''
      over()
    },
  )
  /** Reports the end of the process, unless the results of its files explain it. */
  const finish = async () => {
    const how = await ended
    clearTimeout(limit)
    if (told) return
    told = true
    if (late)
      for (const line of lines)
        if (line.startsWith('# still open')) process.stdout.write(`${line}\n`)
    if (file === '' && (how === 0 || !(sound || late))) return
    const why = late ? `it took longer than ${seconds} s` : how === 0 ? '' : `it ended with ${how}`
    tell(file || `the end of the process of ${last}`, lines, why || 'it ended early', began)
  }
  return {
    kill: (signal) => void child.kill(signal),
    run: async (name) => {
      began = performance.now()
      file = last = name
      const whole = new Promise((resolve) => {
        over = () => resolve(undefined)
      })
      watch()
      names.write(`${name}\n`)
      await Promise.race([whole, ended])
      return !late && !dead
    },
    end: async () => {
      watch()
      names.end()
      await finish()
    },
  }
}
