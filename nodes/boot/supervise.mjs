/**
 * Runs the program in a separate process. A server (`start`) is supervised: when it fails, it is
 * restarted after a pause that doubles each time. A process has failed when it ends with a non-zero
 * status and this process received no stop signal. After several consecutive failures, the
 * supervisor gives up.
 *
 * Invariants:
 * V1. A server whose first process fails before it is ready is not restarted, because that process
 *     has reported the error.
 * V2. The server is stopped gracefully, and not restarted, when this process receives a stop signal
 *     or when the npm process that started this process has ended.
 * V3. When a server has failed, its NATS server receives SIGTERM before the server is restarted or
 *     this process exits.
 */
import { spawn, spawnSync } from 'node:child_process'
import { constants } from 'node:os'

/** Maximum number of consecutive restarts. */
const MAX_RESTARTS = 5
/** Time for which a process must stay ready to reset the number of consecutive restarts. */
const STABLE_MS = 60_000
/** Pause before the first restart. It doubles with each further restart, up to `MAX_PAUSE_MS`. */
const FIRST_PAUSE_MS = 1000
/** Longest pause before a restart. */
const MAX_PAUSE_MS = 16_000
/** Interval between checks whether the npm process that runs this process still exists. */
const PARENT_CHECK_MS = 500

/** @param {string} line */
const say = (line) => void process.stderr.write(`${line}\n`)

/**
 * Ends the NATS server of a process that has failed.
 * @param {number | undefined} pid
 */
function endServer(pid) {
  try {
    if (pid !== undefined) process.kill(pid, 'SIGTERM')
  } catch {
    // The NATS server has already ended.
  }
}

/**
 * Returns the id of the npm process that runs this process: the parent, or the parent of the shell
 * in between. Returns undefined when neither is npm.
 * @returns {number | undefined}
 */
function npmAbove() {
  let pid = process.ppid
  for (let above = 0; above < 2; above++) {
    const { stdout } = spawnSync('ps', ['-o', 'ppid=,args=', '-p', String(pid)], {
      encoding: 'utf8',
    })
    const [, parent, command] = /^\s*(\d+)\s+(.*)/.exec(stdout ?? '') ?? []
    if (command === undefined) return undefined
    if (/(^|\/)npm(\s|$|-cli)/.test(command)) return pid
    pid = Number(parent)
  }
  return undefined
}
/**
 * Returns whether a process exists.
 * @param {number} pid
 */
function lives(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM'
  }
}

/**
 * Runs node with these arguments. This process exits with the status of the last child process.
 * @param {readonly string[]} args arguments of node
 * @param {boolean} supervised whether the child is restarted
 */
export function supervise(args, supervised) {
  let deaths = 0
  let ending = false
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child
  /** @type {NodeJS.Timeout | undefined} */
  let pause

  const run = () => {
    /** @type {number | undefined} */
    let server
    /** @type {number | undefined} */
    let ready
    const started = spawn(process.execPath, args, {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      // Lookups of host names use half of these threads (`nodes/outbound/lookups.ts`).
      env: { UV_THREADPOOL_SIZE: '16', ...process.env },
    })
    child = started
    started.once('error', (error) => {
      say(`The program cannot be started: ${error.message}`)
      process.exit(1)
    })
    started.on('message', (/** @type {unknown} */ message) => {
      if (message === 'ready') ready = performance.now()
      else if (typeof message === 'object' && message && 'server' in message)
        server = Number(message.server)
    })
    started.once('exit', (code, signal) => {
      child = undefined
      const status = code ?? 128 + (signal ? constants.signals[signal] : 0)
      const died = status !== 0 && !ending
      if (died) endServer(server)
      if (!died || !supervised || (ready === undefined && deaths === 0)) process.exit(status)
      if (ready !== undefined && performance.now() - ready > STABLE_MS) deaths = 0
      deaths++
      const how = signal ? `signal ${signal}` : `exit code ${code}`
      if (deaths > MAX_RESTARTS) {
        say(
          `Baton exited ${deaths} times in a row, the last time with ${how}. ` +
            'It is not restarted: check the lines above, then start it again.',
        )
        process.exit(status)
      }
      const ms = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (deaths - 1))
      say(
        `Baton exited with ${how}. It is restarted in ${ms / 1000} s ` +
          `(${deaths} of ${MAX_RESTARTS}).`,
      )
      pause = setTimeout(run, ms)
    })
  }
  /** @param {NodeJS.Signals} signal */
  const end = (signal) => {
    ending = true
    clearTimeout(pause)
    if (child) child.kill(signal)
    else process.exit(128 + constants.signals[signal])
  }
  // A terminal sends Ctrl-C to the whole process group, so the child receives it directly. It is
  // then not forwarded, because a second signal could make the child skip its graceful stop.
  process.on('SIGINT', () => {
    ending = true
    if (!process.stdin.isTTY || !child) end('SIGINT')
  })
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP']))
    process.on(signal, () => end(signal))
  // If npm is killed, it cannot forward a signal, so this process checks whether npm still exists.
  const npm = process.env['npm_lifecycle_event'] ? npmAbove() : undefined
  if (npm !== undefined)
    setInterval(() => {
      if (!lives(npm) && !ending) end('SIGTERM')
    }, PARENT_CHECK_MS).unref()
  run()
}
