/**
 * A process that runs test files one after the other, using test/together.mjs. Each file has a time
 * limit. A file ends when the process prints `the end of <file>`, or when the process ends.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** Environment variable that makes test/together.mjs read the names of files from descriptor 3. */
export const FILES_ENV = 'BATON_TEST_FILES'
/** Matches the line that reports the end of a file. */
const END_LINE = /^(?:not )?ok \d+ - the end of (\S+)/
/**
 * Seconds after the time limit until a process is killed. During this time, the process can report
 * what keeps it alive.
 */
const GRACE_SECONDS = 5

/**
 * @typedef {object} Options
 * @property {readonly string[]} args arguments of node
 * @property {string} cwd
 * @property {NodeJS.ProcessEnv} env
 * @property {number} seconds that a file may take; 0: unlimited
 * @property {(line: string) => void} line receives each line of output
 * @property {(name: string, lines: readonly string[], why: string, began: number) => boolean
 *   } report reports a file with its output. `why` states how its process failed, and is empty if
 *   the result depends only on the tests. Returns whether the file passed.
 */

/**
 * Starts a process.
 * @param {Options} options
 * @returns {import('./test-schedule.mjs').TestProcess & { kill(signal: NodeJS.Signals): void }}
 */
export function startProcess({ args, cwd, env, seconds, line: onLine, report }) {
  const child = spawn(process.execPath, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    env: { ...env, [FILES_ENV]: '1' },
  })
  const names = /** @type {import('node:stream').Writable} */ (child.stdio[3])
  // Writing to a process that has ended fails. The error is ignored, because `finish` reports the
  // end of the process.
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
        setTimeout(() => child.kill('SIGKILL'), GRACE_SECONDS * 1000).unref()
      }, seconds * 1000)
  }
  let began = performance.now()
  /** The file that is running. */
  let file = ''
  /** The last file that ran. */
  let last = ''
  /** Whether all files that ended have passed. */
  let hasPassed = true
  /** Whether the end of the process has been reported. */
  let isReported = false
  /** @type {string[]} */
  let lines = []
  let onEnd = () => {}
  createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY }).on(
    'line',
    (line) => {
      lines.push(line)
      onLine(line)
      // A test may have a name of this form too, so the name of the file is compared.
      if (file === '' || END_LINE.exec(line)?.[1] !== file) return
      hasPassed = report(file, lines, '', began) && hasPassed
      lines = []
      file = ''
      onEnd()
    },
  )
  /** Reports the end of the process, unless the results of its files explain it. */
  const finish = async () => {
    const how = await ended
    clearTimeout(limit)
    if (isReported) return
    isReported = true
    if (late)
      for (const line of lines)
        if (line.startsWith('# still open')) process.stdout.write(`${line}\n`)
    if (file === '' && (how === 0 || !(hasPassed || late))) return
    const why = late ? `it took longer than ${seconds} s` : how === 0 ? '' : `it ended with ${how}`
    report(file || `the end of the process of ${last}`, lines, why || 'it ended early', began)
  }
  return {
    kill: (signal) => void child.kill(signal),
    run: async (name) => {
      began = performance.now()
      file = last = name
      const whole = new Promise((resolve) => {
        onEnd = () => resolve(undefined)
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
