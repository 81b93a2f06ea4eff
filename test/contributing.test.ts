/**
 * The map in CONTRIBUTING.md is complete. The test adds an endpoint, a kind of actor, a view and a
 * setting to a scratch copy of the program. It changes only files that are listed in the map, and
 * adds as many lines as the map states. The copy compiles, and each addition works.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { bundleProgram } from './support/bundle.ts'
import { additions, probe } from './support/structure/additions.ts'
import { once } from './support/structure/once.ts'
import {
  copyProgram,
  edit,
  linesOutside,
  readMap,
  unnamedFiles,
} from './support/structure/scratch-copy.ts'
import { root } from './support/structure/sources.ts'

const map = readMap(readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8'))
const rowOf = (what: string) => {
  const row = map.find((one) => one.what === what)
  if (!row) throw new Error(`The map has no row "${what}".`)
  return row
}
const placesOf = (rows: readonly string[]) => rows.flatMap((what) => rowOf(what).places)

t.test('additions need the files that the map names, and as many lines', async (t) => {
  for (const { rows, edits } of additions) {
    t.strictSame(unnamedFiles(edits, placesOf(rows)), [], `${rows[0]}: files`)
    t.equal(linesOutside(edits, placesOf(rows)), rowOf(rows[0]).lines, `${rows[0]}: lines`)
  }
})

t.test('every row of the map that states lines is proven', async (t) => {
  t.strictSame(
    map.filter(({ lines }) => lines !== undefined).map(({ what }) => what),
    additions.map(({ rows }) => rows[0]),
  )
})

t.test('a file without a place, and too many lines, are found', async (t) => {
  const places = ['protocol/<resource>/rows.ts', 'actors/<folder>/', 'nodes/config.ts']
  const lines = ['a', 'b']
  const edits = [
    { file: 'protocol/some/rows.ts', after: '', lines },
    { file: 'actors/some/deep/file.ts', after: '', lines },
    { file: 'nodes/config.ts', after: '', lines },
    { file: 'protocol/some/other.ts', after: '', lines },
    { file: 'nodes/config.ts.ts', after: '', lines },
  ]
  t.strictSame(unnamedFiles(edits, places), ['protocol/some/other.ts', 'nodes/config.ts.ts'])
  t.equal(linesOutside(edits, places), 6)
})

/** The type checker, a Go program, uses the least processor time if it collects no garbage. */
const env = { ...process.env, GOGC: 'off' }
/**
 * Makes all additions in a copy of the program. Returns what the compiler prints, and the
 * differences between the output of `probe.ts` and the expected output.
 */
async function tryAdditions(): Promise<string> {
  const copy = mkdtempSync(join(tmpdir(), 'baton-additions-'))
  let program: Awaited<ReturnType<typeof bundleProgram>> | undefined
  try {
    copyProgram(copy)
    for (const { edits } of additions) for (const change of edits) edit(copy, change)
    writeFileSync(join(copy, 'probe.ts'), probe)
    const run = async (...args: string[]): Promise<string> =>
      promisify(execFile)(process.execPath, args, { cwd: copy, env, maxBuffer: 2 ** 24 }).then(
        ({ stdout }) => stdout,
        (error: { stdout?: string; stderr?: string }) =>
          `${error.stdout ?? ''}${error.stderr ?? ''}`,
      )
    program = await bundleProgram(copy, 'probe.ts')
    const [compiled, printed] = await Promise.all([
      run(join(root, 'node_modules/typescript-native/bin/tsc'), '--singleThreaded'),
      run(...program.args),
    ])
    return compiled + (printed.trim() === expected ? '' : printed || 'The probe printed nothing.')
  } finally {
    rmSync(copy, { recursive: true, force: true })
    program?.remove()
  }
}
const expected = JSON.stringify({
  operation: 'Take a sample of the memory of an agent',
  reply: { taken: 2 },
  kind: 'smp',
  state: { size: 2 },
  rows: { count: 1 },
  settings: [1, 7, 8],
})

t.test('a copy with all additions compiles, and they work', { timeout: 240_000 }, async (t) => {
  t.equal(await once('additions', tryAdditions), '')
})
