/**
 * The parent process of an environment's worker. It starts the worker, forwards signals to the
 * worker, and ends with the worker's exit code. In a sandbox, it also forwards ports of the
 * loopback interface to sockets of the host, which are the only way out of the network namespace.
 * The program is plain JavaScript without dependencies, because a sandbox contains no packages.
 *
 * The host communicates with this process through file descriptor 4. The host writes `stop` to end
 * the worker. The connection closes when the host ends. This process writes `started`, or `failed`
 * and the reason.
 */
import { spawn } from 'node:child_process'
import { closeSync, readdirSync, readFileSync } from 'node:fs'
import { connect, createServer, Socket } from 'node:net'
import { constants } from 'node:os'

/** File descriptor of the control connection to the host. */
const CONTROL = 4
/** Milliseconds between SIGHUP and SIGKILL after the host has ended. */
const GRACE_MS = 2000
const SETTINGS = 'BATON_INSIDE'

/**
 * @typedef {object} Settings
 * @property {readonly string[]} command
 * @property {string} cwd folder in which the worker starts
 * @property {readonly {port: number, path: string}[]} forwards ports, and the sockets of the host
 */
/** @type {Settings} */
const { command, cwd, forwards } = JSON.parse(process.env[SETTINGS] ?? '{}')
delete process.env[SETTINGS]
const control = new Socket({ fd: CONTROL })

/** @param {string} reason */
const fail = (reason) => control.end(`failed ${reason}\n`, () => process.exit(127))

/**
 * Listens on a port, and forwards each connection byte for byte to a socket of the host.
 * @param {{port: number, path: string}} forward
 */
const listen = ({ port, path }) =>
  new Promise((resolve, reject) => {
    const server = createServer({ allowHalfOpen: true }, (near) => {
      const far = connect({ path, allowHalfOpen: true })
      for (const [one, other] of [
        [near, far],
        [far, near],
      ]) {
        one?.on('error', () => other?.destroy())
        one?.on('close', () => other?.destroySoon())
      }
      near.pipe(far).pipe(near)
    })
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(undefined))
  })

/** The flag of file descriptors that child processes do not inherit. */
const CLOSE_ON_EXEC = 0o2000000
/**
 * Closes descriptors that this process has only because the host itself had inherited them, for
 * example from a process manager. Node.js passes such descriptors on to child processes.
 */
function closeInherited() {
  for (const fd of readdirSync('/proc/self/fd').map(Number))
    try {
      const info = readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')
      const flags = Number.parseInt(/^flags:\s+(\d+)/m.exec(info)?.[1] ?? '0', 8)
      if (fd > 2 && fd !== CONTROL && (flags & CLOSE_ON_EXEC) === 0) closeSync(fd)
    } catch {
      // The descriptor that was used to read the folder is already closed.
    }
}

function start() {
  if (process.platform === 'linux') closeInherited()
  const [program = '', ...args] = command
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] })
  child.once('spawn', () => control.write('started\n'))
  child.once('error', (error) => fail(error.message))
  child.once('exit', (code, signal) =>
    process.exit(code ?? 128 + (constants.signals[signal ?? 'SIGKILL'] ?? 0)),
  )
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGHUP']))
    process.on(signal, () => child.kill(signal))
  control.on('data', () => child.kill('SIGTERM'))
  control.on('error', () => {})
  // The worker gets SIGHUP, after which it reports nothing, instead of SIGTERM. After SIGTERM, it
  // would return its running jobs to their queues, and a command that may be executed only once
  // could be started a second time.
  control.on('close', () => {
    child.kill('SIGHUP')
    setTimeout(() => {
      child.kill('SIGKILL')
      process.exit(137)
    }, GRACE_MS)
  })
}

Promise.all(forwards.map(listen)).then(start, (error) => fail(error.message))
