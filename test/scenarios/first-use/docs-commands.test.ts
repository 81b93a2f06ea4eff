/**
 * Runs the commands of README.md and docs/ as written there, in one folder and against one service.
 * Only `npm` and example addresses are replaced, and only blocks marked as `not run` are skipped.
 */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { blocksOf } from '../../docs/blocks.ts'
import { faultOf, inlineCode } from '../../docs/inline.ts'
import { documentRunner } from '../../docs/run-document.ts'
import { freePort } from '../../support/ports.ts'
import { service } from '../../support/service.ts'
import { receiver } from '../support/servers/receiver.ts'

const root = join(import.meta.dirname, '../../..')
const names = [
  'README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
    .sort()
    .map((name) => `docs/${name}`),
]
const documents = names
  .map((name) => ({ name, blocks: blocksOf(readFileSync(join(root, name), 'utf8')) }))
  .filter(({ blocks }) => blocks.length > 0)

// The port is fixed, as in a normal installation, so that the service knows its public URL.
const s = await service({
  BATON_OUTBOUND_ALLOW: '127.0.0.1/32',
  BATON_PORT: String(await freePort()),
})
const there = await receiver()
const folder = mkdtempSync(join(tmpdir(), 'baton-docs-'))
mkdirSync(join(folder, '.baton'))
writeFileSync(join(folder, '.baton', 'root.key'), s.key)
for (const name of ['client', 'docs', 'examples', 'node_modules', 'package.json', 'protocol'])
  symlinkSync(join(root, name), join(folder, name))
const runner = await documentRunner(
  root,
  folder,
  { BATON_PORT: new URL(s.url).port, HOME: folder, XDG_CONFIG_HOME: join(folder, '.config') },
  [
    ['http://127.0.0.1:8080', s.url],
    ['https://crm.example.org', there.url],
    ['https://example.org', there.url],
  ],
)
t.teardown(async () => {
  await runner.stop()
  await there.close()
  await s.stop()
  rmSync(folder, { recursive: true, force: true })
})

t.test('documents use only the executed kind of code block, and skip few blocks', async (t) => {
  for (const name of names)
    t.notMatch(readFileSync(join(root, name), 'utf8'), /^```(bash|shell|console|zsh)\b/m, name)
  const all = documents.flatMap(({ blocks }) => blocks)
  const skipped = all.filter(({ mark }) => mark === 'skip')
  t.ok(all.length > skipped.length * 4, `${skipped.length} of ${all.length} blocks are not run`)
})

t.test('commands in the text exist, with their flags', async (t) => {
  let mentioned = 0
  for (const name of names)
    for (const { line, code } of inlineCode(readFileSync(join(root, name), 'utf8'))) {
      if (/\bbaton\b/.test(code)) mentioned++
      t.equal(faultOf(code), undefined, `${name}:${line} ${code}`)
    }
  t.ok(mentioned > 10, 'some are mentioned')
})

for (const { name, blocks } of documents)
  t.test(`the commands of ${name} run`, async (t) => {
    const wanted = blocks.filter(({ mark }) => mark !== 'skip')
    const { done, code, output, errors } = await runner.run(wanted)
    t.strictSame(
      done,
      wanted.map(({ line }) => line),
      `all blocks were run to their end; exit code ${code}, ${errors}`,
    )
    if (done.length < wanted.length) t.comment(output)
  })
