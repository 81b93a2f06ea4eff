/**
 * Loads test files into one process, one after the other: `node together.mjs <file>…`. Loading and warming up is most of what
 * many of them take. A file is over, its teardown included, before the next one begins; `the end of <file>` says so.
 */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const files = process.argv.slice(2)
// tap names its folder for fixtures after what was asked to run, and a name has an end.
process.argv.splice(3)
const { default: t } = await import('tap')
/** @type {(() => unknown)[]} */
let ends = []
t.teardown = (/** @type {() => unknown} */ run) => void ends.unshift(run)
// How long a file may take is the runner's to say; for all of them together no file can.
const limitless = t.setTimeout.bind(t)
t.setTimeout = () => {}
limitless(0)

for (const file of files) {
  await import(pathToFileURL(resolve(file)).href)
  const all = ends
  ends = []
  await t.test(`the end of ${file}`, async () => {
    for (const end of all) await end()
  })
}
