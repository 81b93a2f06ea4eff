/** `npm test`: everything under test/, or the files named, through tap; ends with `N passed, N failed`. */
import { spawn, spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createReader } from './tap.mjs'

/** Tests that measure time or memory of a service, or replace all of it: nothing runs beside them. */
const ALONE = /^test.(hostile.(pressure|transport)|scenarios.(answer-page|backup|kill|two-gateways|upgrade|worker-(claims|leases)))\b/
/** Tests that kill processes of their own: they wait more than they work, and run beside each other. */
const KILLING = /^test.scenarios.\w+-kill\b/
const signals = /** @type {const} */ (['SIGINT', 'SIGTERM'])

/**
 * Run the tests.
 * @param {string} root folder of the project
 * @param {readonly string[]} args files, and options of tap
 * @param {string} loader what loads TypeScript
 * @returns {Promise<number>} the exit code: 0 when something ran and nothing failed
 */
export async function runTests(root, args, loader) {
  const finder = [`--import=${loader}`, join(root, 'nodes/nats/install.ts')]
  const server = spawnSync(process.execPath, finder, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  if (server.status !== 0) return 1
  const named = args.some((arg) => !arg.startsWith('-'))
  const all = named ? [] : readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts')).sort().map((name) => join('test', name))
  const alone = (/** @type {string} */ name) => ALONE.test(name)
  const killing = (/** @type {string} */ name) => KILLING.test(name)
  const groups = named ? [args] : [
    [...args, `--jobs=${availableParallelism()}`, ...all.filter((name) => !alone(name) && !killing(name))],
    [...args, '--jobs=2', ...all.filter(killing)],
    [...args, '--jobs=1', ...all.filter(alone)],
  ]
  const reader = createReader((line) => void process.stdout.write(`${line}\n`))
  let code = 0
  let stopped = false
  for (const group of groups) {
    if (stopped) break
    const tap = spawn(process.execPath, [join(root, 'node_modules/.bin/tap'), 'run', '--reporter=tap', ...group], {
      cwd: root, stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, BATON_NATS_SERVER: server.stdout.trim() },
    })
    const kill = (/** @type {NodeJS.Signals} */ signal) => { stopped = true; tap.kill(signal) }
    for (const signal of signals) process.on(signal, kill)
    const ended = new Promise((resolve) => void tap.once('close', (code) => resolve(code ?? 1)))
    for await (const line of createInterface({ input: tap.stdout, crlfDelay: Number.POSITIVE_INFINITY })) reader.line(line)
    code ||= await ended
    for (const signal of signals) process.off(signal, kill)
  }
  const { passed, failed, skipped, files: ran } = reader.result
  const unexplained = code !== 0 && failed === 0
  if (unexplained) process.stdout.write(`tap ended with ${code} although no assertion failed\n`)
  process.stdout.write(`\n${ran} files${skipped > 0 ? `, ${skipped} skipped` : ''}\n${passed} passed, ${failed + (unexplained ? 1 : 0)} failed\n`)
  return code === 0 && failed === 0 && passed > 0 ? 0 : 1
}
