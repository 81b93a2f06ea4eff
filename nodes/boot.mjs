#!/usr/bin/env node
/**
 * The entry point of `npm start`, `npm test` and `baton …`. It is plain JavaScript without
 * dependencies, so it runs in a fresh checkout. It installs the packages if necessary, and then
 * runs the tests or starts the program (`nodes/main.ts`).
 */
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NEEDED = [20, 19]
/**
 * Commands that load additional source files (benchmarks, simulations, chaos tests) and therefore
 * run from the sources instead of the bundle.
 */
const FROM_SOURCES = ['bench', 'simulate', 'chaos']
const usage = `baton: work coordination for humans, systems and AI agents

  npm start                 everything in one process, on http://127.0.0.1:8080
  npm start -- --port 9000  the same on another port; npm start -- --help lists all settings
  npm run cluster           a whole cluster on this machine
  npm run tour              a workflow, a loop and an agent, against a running server
  npm run bench             measurements, each with its table
  npm run simulate          the engine in simulated environments with faults, one per seed
  npm run chaos             a cluster under load and random faults, checked for every promise
  npm test                  all tests; npm test -- test/nodes/process/config.test.ts runs one file
  npm run test:unit         the tests that need no NATS server and no service, in less than 30 s
  npm run test:watch        the unit tests, or the named tests, again after each change
  npm run check             types, lint, dead code, and the rules of the architecture
  npm run docs              the documentation as a static site; -- --serve shows it
  npm run baton -- --help   the command-line client of a running server

Dependencies are installed at the first start. Node ${NEEDED.join('.')} or newer is required.
`

/** @param {string} message */
const fail = (message) => {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const [given, ...args] = process.argv.slice(2)
const command = given === '-h' ? '--help' : given
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1]))
  fail(`Node ${NEEDED.join('.')} or newer is required; this is ${process.versions.node}.`)
else if (command === undefined) {
  // The reader may have closed the pipe.
  process.stdout.on('error', () => {})
  process.stdout.write(usage)
} else {
  const { ensureDependencies } = await import('./boot/dependencies.mjs')
  const isTest = command === 'test'
  const isWatching = isTest && args.includes('--watch')
  const progress = (/** @type {string} */ line) => void process.stderr.write(`${line}\n`)
  /** @type {ReturnType<typeof ensureDependencies>} */
  let native
  try {
    const options = { development: isTest, compile: !isTest || isWatching }
    native = ensureDependencies(root, options, progress)
  } catch (error) {
    fail(/** @type {Error} */ (error).message)
  }
  const loader = import.meta.resolve('@oxc-node/core/register')
  if (isWatching) {
    const { watchTests } = await import('./boot/watch.mjs')
    const others = args.filter((arg) => arg !== '--watch')
    await watchTests(root, others, (line) => void process.stdout.write(`${line}\n`))
    process.exit(0)
  } else if (isTest) {
    const { runTests } = await import('./boot/tests.mjs')
    process.exitCode = await runTests(root, args, loader, native)
  } else {
    const { programOf, sourceOf } = await import('./boot/program.mjs')
    const { supervise } = await import('./boot/supervise.mjs')
    const program = [
      ...(FROM_SOURCES.includes(command)
        ? sourceOf(join(root, 'nodes/main.ts'), loader)
        : programOf(root, loader)),
      command,
      ...args,
    ]
    supervise(program, command === 'start')
  }
}
