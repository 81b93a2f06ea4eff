/**
 * `baton apply`, `diff`, `check`, `export` and `schemas` with a running service: the example is
 * planned, applied, edited, changed outside of the blueprint, pruned and exported.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { schemaNames } from '../../../protocol/blueprints/file-schemas.ts'
import { service } from '../../support/service.ts'
import { commandRunner } from '../support/command-line.ts'
import { listOf } from '../support/given.ts'

const s = await service()
const folder = mkdtempSync(join(tmpdir(), 'baton-apply-'))
t.teardown(() => s.stop())
t.teardown(() => rmSync(folder, { recursive: true }))
const example = join(import.meta.dirname, '../../../examples/support-desk')
const desk = { namespace: 'examples', blueprint_key: 'support-desk' }
const copy = (name: string): string => {
  const path = join(folder, name)
  cpSync(example, path, { recursive: true })
  return path
}

const baton = commandRunner(s, folder)
const edit = (path: string, change: (text: string) => string): void =>
  writeFileSync(path, change(readFileSync(path, 'utf8')))
const filesIn = (path: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
      .map((name) => [name.slice(path.length + 1), readFileSync(name, 'utf8')]),
  )

t.test('the example is planned, applied, and then plans to nothing', async (t) => {
  const checked = await baton(['check', '-f', example], { url: 'http://127.0.0.1:1' })
  t.match(checked, { code: 0, notes: /No faults in 12 resources of 1 blueprints/ })
  const plan = await baton(['apply', '-f', example, '--plan'])
  t.equal(plan.code, 2, plan.notes)
  t.match(plan.out, /^Blueprint support-desk in examples:$/m)
  for (const line of [
    'table tickets',
    'agent triage',
    'workflow answer-ticket',
    'webhook failures',
  ])
    t.match(plan.out, new RegExp(`^  \\+ create ${line}$`, 'm'))
  t.match(plan.out, /Plan: 12 to create\.$/)
  const refused = await baton(['apply', '-f', example])
  t.match(refused, { code: 1, notes: /There is no terminal .* pass --yes .* or --plan/ })
  const no = await baton(['apply', '-f', example], { confirm: false })
  t.match(no, { code: 1, notes: /Perform this plan\?\nNothing was changed\./ })
  t.match(await baton(['apply', '-f', example], { confirm: 'interrupt' }), { code: 130 })
  const done = await baton(['apply', '-f', example], { confirm: true })
  t.match(done, { code: 0, out: /support-desk in examples: 12 created\.$/ }, done.notes)
  const again = await baton(['apply', '-f', example, '--plan'])
  t.match(again, { code: 0, notes: '' })
  // References to resources that the first apply created do not count as drift.
  t.equal(again.out, 'Blueprint support-desk in examples:\n  Plan: 12 unchanged.')
  t.match(await baton(['apply', '-f', example, '--yes']), { code: 0, notes: /nothing to do/ })
})

t.test('changes are shown per field, and long texts line by line', async (t) => {
  const path = copy('changed')
  edit(join(path, 'agents/triage.yaml'), (text) => text.replace('120', '60'))
  edit(join(path, 'prompts/triage.md'), (text) => text.replace('Do not write', 'Never write'))
  edit(join(path, 'workflows/answer-ticket.yaml'), (text) => text.replace('72h', '24h'))
  const plan = await baton(['apply', '-f', path, '--plan'])
  t.equal(plan.code, 2)
  t.match(plan.out, /~ update agent triage\n(.*\n)* {6}timeout_seconds: 120 → 60$/m)
  t.match(plan.out, /system_prompt: \(\d+ lines\) → \(\d+ lines\)/)
  t.match(plan.out, /spec\.steps\[1\]\.config\.expires_in: "72h" → "24h"/)
  t.match(plan.out, /Plan: 2 to update, 10 unchanged\.$/)
  const diff = await baton(['diff', '-f', path])
  t.equal(diff.code, 2)
  t.match(
    diff.out,
    /system_prompt:\n +@@ -\d+,\d+ \+\d+,\d+ @@\n(.*\n)* +-Do not write a reply\.\n +\+Never write a reply\./,
  )
  t.match(await baton(['apply', '-f', path, '--yes']), { code: 0, out: /2 updated, 10 unchanged/ })
})

t.test('changes outside of the blueprint are drift', async (t) => {
  const path = copy('changed')
  await baton(['apply', '-f', path, '--yes'])
  const agents = listOf(await s.ok('agent.list'))
  const id = agents.find((one) => one['name'] === 'writer')?.['id']
  const drifted = async () =>
    listOf(await s.ok('blueprint.drift', { ...desk, include: ['further_types'] }))
      .filter((one) => one['state'] !== 'unchanged')
      .map(({ resource_type, key, state, fields }) => ({ resource_type, key, state, fields }))
  t.strictSame(await drifted(), [])
  await s.ok('agent.update', { id, description: 'Somebody else' })
  t.strictSame(await drifted(), [
    {
      resource_type: 'agent',
      key: 'writer',
      state: 'changed',
      fields: [{ field: 'description', to: 'Somebody else' }],
    },
  ])
  const plan = await baton(['apply', '-f', path, '--plan'])
  t.match(
    plan.out,
    /~ update agent writer\n {4}! drift: description was changed outside .* to "Somebody else"/,
  )
  t.match(await baton(['apply', '-f', path, '--yes']), { code: 0, out: /1 updated/ })
})

t.test('resources that are no longer named stay, and are deleted with --prune', async (t) => {
  const path = copy('pruned')
  rmSync(join(path, 'webhooks'), { recursive: true })
  const plan = await baton(['apply', '-f', path, '--plan'])
  t.match(plan, { code: 0, out: /they stay without --prune\):\n {4}\? webhook failures\n/ })
  const pruned = await baton(['apply', '-f', path, '--plan', '--prune'])
  t.match(pruned, {
    code: 2,
    out: /- delete webhook failures\n(.*\n)* {2}Plan: 1 to delete, 11 unchanged\.$/,
  })
  t.match(await baton(['apply', '-f', path, '--prune', '--yes']), { code: 0, out: /1 deleted/ })
  t.match(await baton(['apply', '-f', example, '--yes']), { code: 0, out: /1 created/ })
})

t.test('protection and the version are stored', async (t) => {
  const plan = await baton(['apply', '-f', example, '--protect', '--plan'])
  t.match(plan, { code: 2, out: /~ protect 12 resources/ })
  t.match(await baton(['apply', '-f', example, '--protect', '--yes']), { code: 0 })
  t.match(await baton(['apply', '-f', example, '--protect', '--plan']), { code: 0 })
  const version = ['--blueprint-version', 'abc']
  t.match(await baton(['apply', '-f', example, '--plan', ...version]), { code: 0 })
  t.match(await baton(['apply', '-f', example, '--yes', ...version]), {
    code: 0,
    out: /12 unchanged/,
  })
  const items = listOf(await s.ok('blueprint.bindings', { include: ['further_types'] }))
  t.equal(items.length, 12)
  t.ok(items.every((one) => one['protected'] && one['blueprint_version'] === 'abc'))
  t.match(await baton(['apply', '-f', example, '--no-protect', '--yes']), { code: 0 })
})

t.test('refusals of the service name the place in the files', async (t) => {
  const path = copy('refused')
  edit(join(path, 'agents/writer.yaml'), (text) => text.replace('key: tone', 'key: voice'))
  const plan = await baton(['apply', '-f', path, '--plan'])
  t.equal(plan.code, 1)
  t.match(
    plan.notes,
    /^not_found: .*\n.*agents\/writer\.yaml:12:5: resources\.agents\[1\]\.skills\[1\]: /,
  )
  const immutable = copy('immutable')
  edit(join(immutable, 'workflows/answer-ticket.yaml'), (text) =>
    text.replace('handle: answer-ticket', 'handle: answer'),
  )
  const fixed = await baton(['apply', '-f', immutable, '--plan'])
  t.match(
    fixed.notes,
    /^blueprint_immutable_field: .*\n.*answer-ticket\.yaml:4:1: resources\.workflows\[0\]\.handle/,
  )
})

t.test('JSON output', async (t) => {
  const { code, out } = await baton(['apply', '-f', example, '--plan', '--json'])
  t.equal(code, 0)
  t.match(JSON.parse(out), [{ status: 'previewed', plan_id: String, orphans: [] }])
  t.match(await baton(['apply', '-f', example, '--json']), { code: 1, notes: /--json requires/ })
})

t.test('the schemas are served without a credential and can be cached', async (t) => {
  const path = join(folder, 'schemas')
  t.match(await baton(['schemas', '--dir', path]), { code: 0 })
  t.strictSame(readdirSync(path).sort(), [...schemaNames].sort())
  for (const name of schemaNames) {
    const answer = await fetch(`${s.url}/schemas/${name}`)
    t.equal(answer.status, 200)
    t.strictSame(await answer.json(), JSON.parse(readFileSync(join(path, name), 'utf8')))
    const etag = answer.headers.get('etag') ?? ''
    t.match(etag, /^"[\w-]{43}"$/)
    const again = await fetch(`${s.url}/schemas/${name}`, { headers: { 'If-None-Match': etag } })
    t.equal(again.status, 304)
    t.equal(await again.text(), '')
  }
  t.equal((await fetch(`${s.url}/schemas/none.json`)).status, 404)
})

/**
 * Starts a proxy to the service. The proxy refuses the first applies, each with the next of these
 * codes.
 */
async function refusing(t: { teardown(run: () => void): void }, codes: string[]): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const code = body.includes('"mode":"apply"') ? codes.shift() : undefined
      if (code !== undefined) {
        response.writeHead(409, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ error: { code, message: 'Refused.' } }))
        return
      }
      void fetch(`${s.url}${request.url}`, {
        method: request.method ?? 'GET',
        headers: {
          authorization: request.headers.authorization ?? '',
          'content-type': 'application/json',
        },
        ...(body !== '' && { body }),
      }).then(async (answer) => {
        response.writeHead(answer.status, { 'content-type': 'application/json' })
        response.end(await answer.text())
      })
    })
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
t.test('an outdated plan is made again, and a busy blueprint is waited for', async (t) => {
  const path = copy('outdated')
  edit(join(path, 'agents/triage.yaml'), (text) => text.replace('120', '90'))
  const url = await refusing(t, ['blueprint_plan_outdated', 'blueprint_busy'])
  const done = await baton(['apply', '-f', path, '--yes'], { url })
  t.equal(done.code, 0, done.notes)
  t.match(done.notes, /has changed since the plan was made\. This is the new plan:/)
  t.match(done.notes, /another request is changing this blueprint; waiting/)
  t.match(done.out, /Plan: .*\n(.*\n)*.*Plan: .*\n.*updated/)
})

t.test('an export without resources states what it looked for', async (t) => {
  t.match(await baton(['export', '--blueprint-key', 'support-desk']), {
    code: 0,
    out: /resources: \{\}/,
    notes: /No resource belongs to the blueprint "support-desk" without a namespace\. .*bindings/,
  })
  t.match(await baton(['export', '--namespace', 'exampels', '--blueprint-key', 'support-desk']), {
    notes: /"support-desk" in the namespace "exampels"/,
  })
})

t.test('an export plans to nothing, and is the same after an import', async (t) => {
  const before = join(folder, 'before')
  t.match(await baton(['export', '--dir', before]), { code: 0, notes: /Wrote \d+ files/ })
  const files = filesIn(before)
  t.match(Object.keys(files), /agents\/triage\.system_prompt\.md/)
  t.match(
    files['agents/triage.yaml'],
    new RegExp(`^# yaml-language-server: \\$schema=${s.url}/schemas/agent.json\n`),
  )
  const plan = await baton(['apply', '-f', before, '--plan'])
  t.match(plan, { code: 0, out: /Plan: 12 unchanged\.$/ }, plan.notes + plan.out)
  const single = await baton([
    'export',
    '--blueprint-key',
    'support-desk',
    '--namespace',
    'examples',
  ])
  t.match(single.out, /^blueprint_key: support-desk$/m)
  const { out } = await baton(['export', '--format', 'json'])
  const { $schema, ...document } = JSON.parse(out) as Record<string, unknown>
  t.equal($schema, `${s.url}/schemas/blueprint.json`)
  t.strictSame(document, await s.ok('blueprint.export', desk))
  // The blueprint must be deleted before it is applied to another project, because handles of
  // workflows are unique in the organization.
  const deleted = await s.ok('blueprint.delete', desk)
  t.equal(deleted['status'], 'deleted')
  const project = await s.ok('project.create', { name: 'Other', handle: 'other' })
  t.equal(project['handle'], 'other')
  const other = ['--project', 'other']
  const applied = await baton(['apply', '-f', before, '--yes', ...other])
  t.match(applied, { code: 0, out: /12 created/ }, applied.notes)
  for (const format of ['yaml', 'json']) {
    const after = join(folder, `after-${format}`)
    await baton(['export', '--dir', after, '--format', format, ...other])
    if (format === 'yaml') t.strictSame(filesIn(after), files)
    const empty = await baton(['apply', '-f', after, '--plan', ...other])
    t.match(empty, { code: 0, out: /Plan: 12 unchanged\.$/ }, empty.out)
  }
  writeFileSync(join(before, 'agents/old.yaml'), 'kind: agent\nkey: old\nname: old\n')
  t.match(await baton(['export', '--dir', before, ...other]), {
    notes: /describe nothing .*\n.*agents\/old\.yaml/,
  })
})
