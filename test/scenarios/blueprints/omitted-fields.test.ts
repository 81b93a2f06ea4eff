/** Fields that the files of a blueprint do not name any more keep their values, and plans say so. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { service } from '../../support/service.ts'
import { commandRunner } from '../support/command-line.ts'
import { listOf } from '../support/given.ts'

const s = await service()
const folder = mkdtempSync(join(tmpdir(), 'baton-omitted-'))
t.teardown(() => s.stop())
t.teardown(() => rmSync(folder, { recursive: true }))
const baton = commandRunner(s, folder)
const file = join(folder, 'nightly.yaml')
const nightly = (more: string): void =>
  writeFileSync(
    file,
    'kind: loop\nkey: nightly\nname: Nightly\nstatus: active\n' +
      `steps: [{id: nap, kind: sleep, config: {duration: 1s}}]\n${more}`,
  )
const identity = ['--blueprint-key', 'nightly']
const limitsNow = async () => listOf(await s.ok('loop.list'))[0]?.['limits']
const hint = /^ {4}\? limits is not named any more and stays; an empty value removes it$/m

t.test('a plan names the fields that the last apply set and the files omit', async (t) => {
  nightly('limits: {wall_clock_timeout: 2h}\ndescription: Loads\n')
  const created = await baton(['apply', '-f', file, ...identity, '--yes'])
  t.equal(created.code, 0, created.notes)
  t.notMatch(created.out, hint)
  nightly('description: Loads\n')
  const plan = await baton(['apply', '-f', file, ...identity, '--plan'])
  t.equal(plan.code, 0, 'an omitted field is no change')
  t.match(plan.out, /^ {2}= unchanged loop nightly$/m)
  t.match(plan.out, hint)
  t.notMatch(plan.out, /description|status is not named/)
  nightly('description: Loads all\n')
  const applied = await baton(['apply', '-f', file, ...identity, '--yes'])
  t.match(applied.out, hint)
  t.strictSame(await limitsNow(), { wall_clock_timeout: '2h' })
  nightly('description: Loads all\nlimits: {}\n')
  const emptied = await baton(['apply', '-f', file, ...identity, '--yes'])
  t.notMatch(emptied.out, hint)
  t.equal(await limitsNow(), undefined)
})

t.test('the omitted fields are part of plans only', async (t) => {
  const request = (more: object) => ({
    blueprint_key: 'desk',
    resources: { skills: [{ key: 's', name: 'S', ...more }] },
  })
  await s.ok('blueprint.apply', request({ description: 'Tone', instructions: 'Be polite.' }))
  const preview = { ...request({ instructions: 'Be polite.' }), mode: 'preview' }
  const [plain] = listOf(await s.ok('blueprint.apply', preview), 'changes')
  t.notOk(Object.hasOwn(plain ?? {}, 'omitted'))
  const planned = await s.ok('blueprint.apply', { ...preview, include: ['plan'] })
  t.match(listOf(planned, 'changes'), [{ action: 'unchanged', omitted: ['description'] }])
})
