/** Parts of the access, audit and blueprint pages that need no browser. */
import t from 'tap'
import { actionPermissionsOf, allowsPermission } from '../../console/pages/access/permissions.ts'
import { clientName } from '../../console/pages/account/client-name.ts'
import { changeRows, changeSummary } from '../../console/pages/audit/changes.ts'
import { filtersOf } from '../../console/pages/audit/filters.ts'
import { csvOf, jsonLinesOf } from '../../console/pages/audit/table-file.ts'
import { countsOf, groupsOf, protectionOf } from '../../console/pages/blueprints/groups.ts'
import { readFiles, variablesOf } from '../../console/pages/blueprints/read-files.ts'
import { changedSettings, settingsOf } from '../../console/pages/settings/changes.ts'
import { returnTarget } from '../../console/pages/sign-in/return-target.ts'
import { eventsOf } from '../../console/pages/webhooks/events-text.ts'
import type { Binding } from '../../protocol/blueprints/schema.ts'
import type { AuditEntry } from '../../protocol/projects/rows.ts'

t.test('permissions on actions are read with and without their prefix', async (t) => {
  t.strictSame(actionPermissionsOf('mail.send\nactions.execute.crm.*, mail.send'), [
    'actions.execute.mail.send',
    'actions.execute.crm.*',
  ])
  t.ok(allowsPermission(['actions.execute.*'], 'actions.execute.crm.*'))
  t.ok(allowsPermission(['service.project.view'], 'service.project.view'))
  t.notOk(allowsPermission(['actions.execute.crm.*'], 'actions.execute.*'))
})

t.test('a person returns only to a page of this origin', async (t) => {
  for (const path of ['/', '/p/shop/runs?q=a%20b#x', '/p/größe', '/.//x'])
    t.equal(returnTarget(path), path)
  const foreign = ['//evil.example', '/\\evil.example', '/\t/evil.example', '/\n\\evil.example']
  for (const path of [
    ...foreign,
    '/\r//evil.example',
    'https://evil.example',
    '',
    null,
    '/sign-in',
  ])
    t.equal(returnTarget(path), '/', JSON.stringify(path))
})

t.test('browsers have short names', async (t) => {
  const chrome =
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) ' +
    'Chrome/140.0.0.0 Safari/537.36'
  t.equal(clientName(chrome), 'Chrome 140, Linux')
  t.equal(clientName(`${chrome} Edg/141.0`), 'Edge 141, Linux')
  t.equal(
    clientName(
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 ' +
        '(KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1',
    ),
    'Safari 18, iOS',
  )
  t.equal(clientName('curl/8.5'), 'curl/8.5')
})

const entry: AuditEntry = {
  id: 'aud_1',
  org_id: 'org_1',
  resource_type: 'role',
  resource_id: 'role_1',
  resource_name: '=cmd("x")',
  action: 'update',
  actor_type: 'user',
  actor_id: 'user_1',
  user_agent: 'a, "b"',
  changes: { name: { from: 'a', to: 'b' }, tags: { to: { x: '1' } } },
  created_at: '2026-01-01T00:00:00.000Z',
}

t.test('changes are shown as rows and as one line', async (t) => {
  t.strictSame(changeRows(entry.changes), [
    { name: 'name', from: 'a', to: 'b' },
    { name: 'tags', from: undefined, to: { x: '1' } },
  ])
  t.equal(changeSummary(entry.changes), 'name: a → b; tags: {"x":"1"}')
  t.equal(changeRows({ counts: { created: 1 } }), undefined, 'another form')
  t.equal(changeSummary({ counts: { created: 1 } }), 'counts')
  t.equal(changeSummary(undefined), '')
})

t.test('an audit file quotes its cells and has no formulas', async (t) => {
  const [header = '', line = ''] = csvOf([entry]).split('\r\n')
  t.match(header, /^created_at,project_id,/)
  t.ok(line.includes(`"'=cmd(""x"")"`), line)
  t.ok(line.includes('"a, ""b"""'), line)
  t.strictSame(JSON.parse(jsonLinesOf([entry])), entry)
})

t.test('filters come from the address', async (t) => {
  const query = new URLSearchParams('type=role&action=delete&period=1h&actor=user_1')
  t.strictSame(filtersOf(query, Date.parse('2026-01-01T01:00:59Z')), {
    resource_type: ['role'],
    action: ['delete'],
    created_after: '2026-01-01T00:00:00.000Z',
    actor_id: 'user_1',
  })
  t.strictSame(filtersOf(new URLSearchParams('period=toString'), 0), {})
})

t.test('only changed settings are sent', async (t) => {
  const saved = settingsOf({
    id: 'prj_1',
    name: 'Shop',
    handle: 'shop',
    access_mode: 'open',
    created_at: '',
    updated_at: '',
  })
  t.equal(saved.attachments, true, 'the default of the service')
  t.strictSame(changedSettings(saved, { ...saved, name: 'Store', attachments: false }), {
    name: 'Store',
    attachments: false,
  })
})

t.test('event types are read from a text', async (t) => {
  t.strictSame(eventsOf(' run.* ,check.failed\nrun.*'), ['run.*', 'check.failed'])
})

const binding = (key: string, more: Partial<Binding> = {}): Binding => ({
  resource_type: 'table',
  key,
  resource_id: key,
  protected: false,
  delete_on_destroy: true,
  ...more,
})

t.test('bindings are grouped by their blueprint', async (t) => {
  const groups = groupsOf([
    binding('a', { namespace: 'z', blueprint_key: 'one' }),
    binding('b', { blueprint_key: 'one', protected: true }),
    binding('c', { blueprint_key: 'one' }),
  ])
  t.strictSame(
    groups.map(({ namespace, key, bindings }) => [namespace, key, bindings.length]),
    [
      ['', 'one', 2],
      ['z', 'one', 1],
    ],
  )
  t.equal(protectionOf(groups[0]?.bindings ?? []), 'some')
  t.equal(protectionOf(groups[1]?.bindings ?? []), 'none')
  t.strictSame(countsOf([{ resource_type: 'table', key: 'a', action: 'created' }]), [
    ['created', 1],
  ])
})

t.test('uploaded files are one blueprint, with references between files', async (t) => {
  const header = { path: 'desk/blueprint.yaml', text: 'blueprint_key: desk\n' }
  const { blueprints, faults } = readFiles(
    [
      header,
      {
        path: 'desk/skills/tone.yaml',
        text: 'kind: skill\nkey: tone\nname: ${NAME}\ninstructions: !file ../texts/tone.md\n',
      },
      { path: 'desk/texts/tone.md', text: 'Be polite.\n' },
    ],
    variablesOf('NAME=Tone\nnot a variable'),
  )
  t.strictSame(faults, [])
  t.strictSame(blueprints[0]?.request, {
    blueprint_key: 'desk',
    resources: { skills: [{ key: 'tone', name: 'Tone', instructions: 'Be polite.' }] },
  })
  t.equal(blueprints[0]?.placeOf('resources.skills[0].name'), 'desk/skills/tone.yaml:3:1')
  t.equal(blueprints.length, 1)

  const outside = readFiles(
    [header, { path: 'desk/a.yaml', text: 'kind: skill\nkey: a\nname: !file ../../b.md\n' }],
    {},
  )
  t.match(outside.faults[0], /desk\/a.yaml:3:\d+: .*not among the chosen files/)
  t.match(readFiles([{ path: 'a.yaml', text: 'kind: tabel' }], {}).faults[0], /did you mean table/)
})
