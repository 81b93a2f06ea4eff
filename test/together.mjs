/**
 * Loads test files into one process, one after the other: the files in the arguments and then, if
 * FILES_ENV is set, the files whose names arrive on file descriptor 3, one per line. Many test
 * files spend most of their time loading modules. In one process, each module is loaded only once.
 * A file ends, including its teardown, before the next one begins. The test `the end of <file>`
 * marks this point.
 *
 * tap is loaded without its async hooks. The hooks determine to which test an uncaught error
 * belongs. However, they run for each promise of the services in this process, which takes a third
 * of the processor time of a scenario. Without the hooks, the test `the end of <file>` reports the
 * uncaught errors of its file.
 */
import hooks, { createHook } from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'
import { Socket } from 'node:net'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { CPU_ENV, cpuLine, cpuTime } from '../nodes/boot/cpu.mjs'
import { BUNDLE_ENV, bundledTest } from '../nodes/boot/test-bundle.mjs'
import { FILES_ENV } from '../nodes/boot/test-process.mjs'

/** Milliseconds after the last file within which the process must end on its own. */
const END_MS = 5000

const files = process.argv.slice(2)
// tap derives the name of its fixture folder from the arguments, and the name must not be long.
process.argv.splice(2, files.length, files[0] ?? `files-of-${process.pid}`)
const follows = process.env[FILES_ENV]
// A child process that a test starts must not read file names from descriptor 3.
delete process.env[FILES_ENV]
/** The stand-in for every async hook of tap. It is never called. */
const unused = { enable: () => unused, disable: () => unused }
hooks.createHook = () => unused
syncBuiltinESMExports()
const { default: t } = await import('tap')
hooks.createHook = createHook
syncBuiltinESMExports()
/**
 * Uncaught errors of the current file. The final test of the file reports them.
 * @type {unknown[]}
 */
const uncaught = []
process.on('uncaughtException', (error) => {
  // The error is printed immediately, because the test may now wait forever.
  process.stderr.write(`${error?.stack ?? error}\n`)
  uncaught.push(error)
})
process.on('exit', () => {
  if (uncaught.length > 0) process.exitCode = 1
})
const { stdout } = process
const write = stdout.write.bind(stdout)
// A write to a pipe blocks, so the lines of one turn of the event loop are written together. This
// saves 2 s for the 27,000 lines of the unit tests (2026-11-27).
stdout.write = (/** @type {Parameters<typeof write>} */ ...args) => {
  if (stdout.writableCorked === 0) {
    stdout.cork()
    setImmediate(() => stdout.uncork())
  }
  return write(...args)
}
process.on('exit', () => stdout.uncork())
const bundle = process.env[BUNDLE_ENV]
/** @type {(() => unknown)[]} */
const ends = []
t.teardown = (/** @type {() => unknown} */ run) => void ends.unshift(run)
// The runner limits the time of each file. A timeout that a file sets would apply to all files
// together.
const limitless = t.setTimeout.bind(t)
t.setTimeout = () => {}
limitless(0)

/** @param {string} file */
async function run(file) {
  const began = cpuTime()
  const path = bundle === undefined ? file : bundledTest(bundle, file)
  await import(pathToFileURL(resolve(path)).href).catch((error) => void uncaught.push(error))
  const loaded = cpuTime()
  // This test is awaited, so that `the end of …` is queued only after all tests of the file have
  // ended. Otherwise, an assertion of a helper might follow `the end of …`: if a helper asserts
  // with the `t` of the file instead of the `t` of a test, tap queues the assertion behind all
  // tests that are known by then.
  await t.test(`the tests of ${file}`, async () => {})
  await t.test(`the end of ${file}`, async (t) => {
    // All tests of the file have ended. Some may have added teardowns while they ran.
    for (let end = ends.shift(); end; end = ends.shift()) await end()
    for (const error of uncaught.splice(0)) t.error(error ?? new Error('undefined was thrown'))
    if (process.env[CPU_ENV]) t.comment(cpuLine(file, began, loaded, cpuTime()).slice(2))
  })
}

for (const file of files) await run(file)
if (follows)
  for await (const file of createInterface({ input: new Socket({ fd: 3 }) })) await run(file)
// All files and their teardowns have ended, so resources that are still open cannot affect the
// results of the tests.
setTimeout(() => {
  console.log(`# still open: ${process.getActiveResourcesInfo().join(', ')}`)
  process.exit()
}, END_MS).unref()
// The environment of the process is not cleaned up. In the cleanup, uWebSockets.js frees the apps of
// all services that ran in this process, and ended 2 of 60 processes with SIGSEGV (2026-11-29).
process.on('exit', () => process.exit())
