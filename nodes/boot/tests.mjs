/**
 * `npm test`: every file under test/, or the files named; ends with `N passed, N failed`. A file has a process of its own,
 * but for pure tests, which share some.
 * The files are tap's and run by node itself: tap's own runner would load a TypeScript compiler and three more loaders into
 * each process, 1.4 s a file.
 */
import { spawn, spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createReader } from './tap.mjs'

/** Tests that measure time or memory of a service: nothing runs beside them. */
const ALONE = /^test.hostile.(pressure|transport)\b/
/** Tests of several processes, or of what must happen in time: two run at once, whatever the machine has. */
const PAIRED = /^test.scenarios.(\w+-kill|answer-page|backup|kill|two-gateways|upgrade|worker-(claims|leases))\b/
/** Tests of pure code, and how many of them share a process: loading what they test takes longer than most of them. */
const PURE = /^(test.(?:actors|protocol|views))\b/
const TOGETHER = 24
/** Tests that take longest begin first, so that none of them is left over when all others are done. */
const LONG = /^test.(checks|simulation|hostile.)/
/** Seconds that a file may take, and that it is given to say what it was doing. */
const LIMIT = 300
const GRACE = 5
/** Loaded first by each file: asked to end, it says what kept it. */
const TELL = `data:text/javascript,${encodeURIComponent("process.on('SIGTERM', () => console.log('# still open: ' + process.getActiveResourcesInfo().join(', ')))")}`
const together = fileURLToPath(new URL('together.mjs', import.meta.url))
const signals = /** @type {const} */ (['SIGINT', 'SIGTERM'])

/** @typedef {{ readonly name: string, readonly files: readonly string[] }} Process */
/** Files that share processes, by their folder. @param {readonly string[]} files @returns {Process[]} */
function shared(files) {
  /** @type {Map<string, string[]>} */
  const folders = new Map()
  for (const file of files) {
    const folder = PURE.exec(file)?.[1] ?? ''
    folders.set(folder, [...(folders.get(folder) ?? []), file])
  }
  return [...folders].flatMap(([folder, all]) => {
    const parts = Math.ceil(all.length / TOGETHER)
    return Array.from({ length: parts }, (_, part) => all.filter((_, i) => i % parts === part)).map((files, part) => ({ name: `${folder}, ${files.length} files${parts > 1 ? `, part ${part + 1} of ${parts}` : ''}`, files }))
  })
}

/**
 * Run the tests.
 * @param {string} root folder of the project
 * @param {readonly string[]} args files, and `--jobs=N` for how many run at once
 * @param {string} loader what loads TypeScript
 * @returns {Promise<number>} the exit code: 0 when something ran and nothing failed
 */
export async function runTests(root, args, loader) {
  const finder = [`--import=${loader}`, join(root, 'nodes/nats/install.ts')]
  const server = spawnSync(process.execPath, finder, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  if (server.status !== 0) return 1
  const jobs = Number(args.findLast((arg) => arg.startsWith('--jobs='))?.slice('--jobs='.length)) || availableParallelism()
  const named = args.filter((arg) => !arg.startsWith('-'))
  const files = named.length > 0 ? named : readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts')).sort().map((name) => join('test', name))
  const single = (/** @type {string} */ name) => ({ name, files: [name] })
  const own = named.length > 0 ? files : files.filter((name) => !PURE.test(name))
  const beside = [...own.filter((name) => !ALONE.test(name) && !PAIRED.test(name)).sort((a, b) => Number(LONG.test(b)) - Number(LONG.test(a))).map(single), ...shared(files.filter((name) => !own.includes(name)))]
  const [paired, alone] = [PAIRED, ALONE].map((kind) => own.filter((name) => kind.test(name)).map(single))
  const reader = createReader((line) => void process.stdout.write(`${line}\n`))
  const env = { ...process.env, BATON_NATS_SERVER: server.stdout.trim(), TAP_TIMEOUT: String(LIMIT) }
  /** @type {Set<import('node:child_process').ChildProcess>} */
  const running = new Set()
  let stopped = false

  /** The files of a process, as a test that contains their tests. @param {Process} process @returns {Promise<void>} */
  const run = async ({ name, files }) => {
    const began = performance.now()
    const child = spawn(process.execPath, [`--import=${TELL}`, `--import=${loader}`, ...(files.length > 1 ? [together, ...files] : files)], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], env })
    running.add(child)
    let late = false
    const end = setTimeout(() => {
      late = true
      child.kill('SIGTERM')
      setTimeout(() => child.kill('SIGKILL'), GRACE * 1000).unref()
    }, LIMIT * 1000)
    const ended = new Promise((resolve) => void child.once('close', (code, signal) => resolve(signal ?? code)))
    /** @type {string[]} */
    const lines = [`# Subtest: ${name}`]
    for await (const line of createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY })) lines.push(`    ${line}`)
    const how = await ended
    clearTimeout(end)
    running.delete(child)
    if (stopped) return
    if (late) for (const line of lines) if (line.startsWith('    # still open')) process.stdout.write(`${line.trim()}\n`)
    const why = late ? `it took longer than ${LIMIT} s` : how === 0 ? '' : `it ended with ${how}`
    lines.push(`${how === 0 && !late ? 'ok' : 'not ok'} 1 - ${name}${why && ` (${why})`} # time=${(performance.now() - began).toFixed(0)}ms`)
    for (const line of lines) reader.line(line)
  }
  /** @param {readonly Process[]} processes @param {number} width */
  const all = async (processes, width) => {
    const left = [...processes]
    await Promise.all(Array.from({ length: width }, async () => {
      for (let one = left.shift(); one && !stopped; one = left.shift()) await run(one)
    }))
  }
  const stop = (/** @type {NodeJS.Signals} */ signal) => {
    stopped = true
    for (const child of running) child.kill(signal)
  }
  for (const signal of signals) process.on(signal, stop)
  await all(beside, jobs)
  await all(paired ?? [], Math.min(jobs, 2))
  await all(alone ?? [], 1)
  for (const signal of signals) process.off(signal, stop)
  const { passed, failed, skipped } = reader.result
  process.stdout.write(`\n${files.length} files${skipped > 0 ? `, ${skipped} skipped` : ''}\n${passed} passed, ${failed} failed\n`)
  return !stopped && failed === 0 && passed > 0 ? 0 : 1
}
