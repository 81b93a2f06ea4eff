/** Plans show references to resources that the apply creates by their keys. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { service } from '../../support/service.ts'
import { commandRunner } from '../support/command-line.ts'

const s = await service()
const folder = mkdtempSync(join(tmpdir(), 'baton-references-'))
t.teardown(() => s.stop())
t.teardown(() => rmSync(folder, { recursive: true }))
const baton = commandRunner(s, folder)
const file = join(folder, 'desk.yaml')

t.test('a plan names a new resource by its key', async (t) => {
  const agent = 'kind: agent\nkey: helper\nname: helper\n'
  const apply = (...flags: string[]) =>
    baton(['apply', '-f', file, '--blueprint-key', 'desk', ...flags])
  writeFileSync(file, agent)
  t.equal((await apply('--yes')).code, 0)
  writeFileSync(
    file,
    `${agent}skills: [{key: a/b}]\n---\nkind: skill\nkey: a/b\nname: Tone\ninstructions: Be polite.\n`,
  )
  const plan = await apply('--plan')
  t.match(plan.out, /^ {6}skills: \(none\) → \[\{"key":"a\/b"\}\]$/m)
  t.equal((await apply('--yes')).code, 0)
  t.match((await apply('--plan')).out, /Plan: 2 unchanged/)
})
