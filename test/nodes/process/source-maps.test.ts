/** Stack traces of a process that runs a bundle contain positions in the source files. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import t from 'tap'

const preload = new URL('../../../nodes/boot/source-maps.mjs', import.meta.url).href

t.test('a stack trace names sources, and what has no map is shown as it is', async (t) => {
  const folder = t.testdir({
    'fail.ts':
      'interface Gone {\n  x: 1\n}\nexport const fail = (): Gone => {\n  throw new TypeError("no")\n}\n',
    'plain.mjs': 'export const call = (f) => f()\n',
    'main.ts':
      'import { fail } from "./fail.ts"\nimport { call } from "./plain.mjs"\n' +
      'const shown = (f: () => unknown) => {\n  try {\n    f()\n  } catch (error) {\n' +
      '    console.log((error as Error).stack)\n  }\n}\n' +
      'shown(() => call(fail))\nshown(() => new URL("x"))\n' +
      'shown(() => {\n  throw Object.assign(new Error("own"), { name: "Named" })\n})\n' +
      'shown(() => {\n  throw new Error("close trace")\n})\n',
  })
  const bundle = join(folder, 'out/bundle.mjs')
  buildSync({
    entryPoints: [join(folder, 'main.ts')],
    outfile: bundle,
    bundle: true,
    format: 'esm',
    platform: 'node',
    sourcemap: true,
    sourcesContent: false,
    external: ['./plain.mjs'],
  })
  writeFileSync(join(folder, 'out/plain.mjs'), 'export const call = (f) => f()\n')
  const lines = execFileSync(process.execPath, [`--import=${preload}`, bundle], {
    encoding: 'utf8',
  }).split('\n')
  t.equal(lines[0], 'TypeError: no')
  t.match(lines[1], `at fail (${join(folder, 'fail.ts')}:5:9)`)
  t.match(lines[2], 'plain.mjs:1:')
  t.ok(lines.includes('TypeError [ERR_INVALID_URL]: Invalid URL'))
  t.ok(lines.includes('Named: own'))
  const closed = lines.indexOf('Error: close trace')
  t.match(lines[closed + 1], 'bundle.mjs:', 'the NATS client never shows this error')
})
