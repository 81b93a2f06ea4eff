/** Reading blueprint files: document forms, fault locations, variables and named files. */
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findFiles } from '../../../../client/cli/blueprints/find-files.ts'
import { readBlueprints } from '../../../../client/cli/blueprints/read.ts'
import { folderFor, read } from './support.ts'

const header = 'namespace: acme\nblueprint_key: desk\n'
const agent = (key: string, more = '') => `kind: agent\nkey: ${key}\nname: ${key}\n${more}`

t.test('documents of several files become one request per blueprint', async (t) => {
  const folder = folderFor(t)
  folder.write('blueprint.yaml', `${header}blueprint_version: "7"\n`)
  folder.write('agents/a.yaml', `${agent('a')}---\n${agent('b')}`)
  folder.write(
    'tables.json',
    '{"resources": {"tables": [{"key": "t", "name": "tickets", "schema": {"columns": ' +
      '[{"name": "id", "type": "string", "required": true}],\n\t"identity_column": "id"}}]}}',
  )
  folder.write('notes.md', 'not a document')
  folder.write('.hidden/x.yaml', 'neither: this')
  const { requests, faults } = read(folder)
  t.strictSame(faults, [])
  t.strictSame(requests, [
    {
      namespace: 'acme',
      blueprint_key: 'desk',
      blueprint_version: '7',
      resources: {
        agents: [
          { key: 'a', name: 'a' },
          { key: 'b', name: 'b' },
        ],
        tables: [
          {
            key: 't',
            name: 'tickets',
            schema: {
              columns: [{ name: 'id', type: 'string', required: true }],
              identity_column: 'id',
            },
          },
        ],
      },
    },
  ])
})

t.test('a document belongs to the nearest blueprint', async (t) => {
  const folder = folderFor(t)
  folder.write('one/blueprint.yaml', 'blueprint_key: one\n')
  folder.write('one/deep/a.yaml', agent('a'))
  folder.write('two/all.yaml', `blueprint_key: two\n---\n${agent('b')}---\n${agent('c')}`)
  const { requests } = read(folder)
  t.strictSame(
    requests.map(({ blueprint_key, resources }) => [
      blueprint_key,
      resources.agents?.map(({ key }) => key),
    ]),
    [
      ['one', ['a']],
      ['two', ['b', 'c']],
    ],
  )
  folder.write('d.yaml', agent('d'))
  t.strictSame(read(folder).faults, [
    'd.yaml:1:1: the blueprint of these resources is ambiguous: one/blueprint.yaml:1:1 and ' +
      'two/all.yaml:1:1 name different blueprints; put the resources into the file of their ' +
      'blueprint',
  ])
  t.strictSame(
    read(folder, {}, { blueprint_key: 'all' }).requests.map(({ blueprint_key }) => blueprint_key),
    ['all'],
    'a flag puts all documents into one blueprint',
  )
})

t.test('contradictions name both places', async (t) => {
  const folder = folderFor(t)
  folder.write(
    'a.yaml',
    `${header}blueprint_version: "1"\nprotect_resources: true\n---\n${agent('x')}`,
  )
  folder.write(
    'b.yaml',
    `${header}blueprint_version: "2"\nprotect_resources: false\n---\nkind: agent\nname: other\nkey: x\n`,
  )
  folder.write('c.yaml', 'kind: agent\nkey: z\nname: other\n')
  t.strictSame(read(folder).faults, [
    'b.yaml:3:1: blueprint_version: differs from a.yaml:3:1 of the same blueprint',
    'b.yaml:4:1: protect_resources: differs from a.yaml:4:1 of the same blueprint',
    'b.yaml:8:1: key: "x" is already the key of the agent at a.yaml:7:1',
    'c.yaml:3:1: name: "other" is already the name of the agent at b.yaml:7:1',
  ])
})

t.test('all faults are reported with file, line and column', async (t) => {
  const folder = folderFor(t)
  folder.write('a.yaml', 'kind: agent\nkey: a\ncolour: red\nstatus: on\n---\nkind: agnet\n')
  folder.write('b.yaml', '  namespace: x\n  resources:\n    agent: []\n')
  folder.write(
    'c.json',
    '{"kind": "workflow", "key": "w", "name": "w",\n "spec": {"steps": [{"id": "x"}]}}',
  )
  folder.write(
    'd.yaml',
    'kind: loop\nkey: l\nname: l\ntriggers:\n  - kind: schedule\n    config:\n      cron: never\n',
  )
  folder.write(
    'e.yaml',
    'kind: table\nkey: t\nname: t\nschema:\n  identity_column: id\n  columns:\n' +
      '    - {name: id, type: number}\n',
  )
  folder.write(
    'f.yaml',
    `${agent('f')}toolkits:\n  - key: x\n    id: y\n---\nkind: secret\nkey: s\n`,
  )
  folder.write('g.yaml', 'just a text\n')
  const { faults } = read(folder)
  t.match(faults, [
    /^a\.yaml:6:1: kind: must be one of: table, action, .*; did you mean agent\?$/,
    /^b\.yaml:3:5: resources\.agent: is not a known field$/,
    /^g\.yaml:1:1: the document: must be an object$/,
    /^a\.yaml:1:1: name: is required$/,
    /^a\.yaml:3:1: colour: is not a known field$/,
    /^a\.yaml:4:1: status: must be one of: active, inactive$/,
    /^c\.json:2:21: spec\.steps\[0\].*/,
    /^d\.yaml:7:7: triggers\[0\]\.config\.cron: /,
    /^e\.yaml:5:3: schema\.identity_column: must name a declared column of type string/,
    /^f\.yaml:5:5: toolkits\[0\]: give exactly one of id, key and blueprint_ref$/,
    /^f\.yaml:8:1: name: is required$/,
  ])
  t.equal(faults.length, 11, faults.join('\n'))
})

t.test('variables are replaced in texts', async (t) => {
  const folder = folderFor(t)
  folder.write(
    'a.yaml',
    agent(
      'a',
      'description: "${WHO} ${NONE:-nobody} ${EMPTY:-default} [${EMPTY}] $${WHO} ${who} $WHO"\n' +
        "system_prompt: costs $${{ '${WHO}' }} ${{ input.${WHO} }}\n",
    ),
  )
  const env = { WHO: 'a: "b"\n- ${X}', EMPTY: '' }
  t.match(read(folder, env).requests[0]?.resources.agents, [
    {
      description: 'a: "b"\n- ${X} nobody default [] ${WHO} ${who} $WHO',
      system_prompt: "costs $${{ '${WHO}' }} ${{ input.${WHO} }}",
    },
  ])
  t.strictSame(read(folder, { EMPTY: '' }).faults, [
    'a.yaml:4:14: the environment variable WHO is not set; set it, give a default as in ' +
      '${WHO:-text}, or write $${WHO} for the text',
  ])
})

t.test('texts stand in neighbouring files', async (t) => {
  const folder = folderFor(t)
  folder.write('prompts/a.md', '\ufeffHello ${WHO},\n\tyou help.\n\n')
  folder.write('agents/a.yaml', agent('a', 'system_prompt: !file ../prompts/a.md\n'))
  folder.write(
    'b.json',
    '{"kind":"agent","key":"b","name":"b","system_prompt":{"$file":"prompts/a.md"}}',
  )
  const text = 'Hello ${WHO},\n\tyou help.\n'
  t.match(read(folder).requests[0]?.resources.agents, [
    { key: 'a', system_prompt: text },
    { key: 'b', system_prompt: text },
  ])
})

t.test('a file outside of the folder, or one that is no text, is a fault', async (t) => {
  const outside = folderFor(t)
  const secret = outside.write('secret.txt', 'secret')
  const folder = folderFor(t)
  const faultOf = (name: string) => {
    folder.write('a.yaml', agent('a', `system_prompt: !file ${JSON.stringify(name)}\n`))
    return read(folder).faults
  }
  symlinkSync(secret, join(folder.path, 'link.md'))
  symlinkSync(outside.path, join(folder.path, 'elsewhere'))
  folder.write('bytes.md', Uint8Array.of(0xff, 0xfe, 0x41))
  folder.write('long.md', 'x'.repeat(1_048_577))
  const at = 'a.yaml:4:22: the file'
  t.match(faultOf(secret), [`${at} ${JSON.stringify(secret)} must be a relative path`])
  t.match(faultOf('link.md'), [`${at} link.md is outside of the folder`])
  t.match(faultOf('elsewhere/secret.txt'), [`${at} elsewhere/secret.txt is outside`])
  t.match(faultOf(`../${outside.path.split('/').at(-1)}/secret.txt`), [/is outside of the folder/])
  t.match(faultOf('missing.md'), [`${at} missing.md cannot be read (ENOENT)`])
  t.match(faultOf('bytes.md'), [`${at} bytes.md is not UTF-8`])
  t.match(faultOf('long.md'), [`${at} long.md has more than 1048576 bytes`])
  t.match(faultOf('.'), [/is outside of the folder|is not a file/])
  symlinkSync(outside.write('other.yaml', agent('b')), join(folder.path, 'b.yaml'))
  t.throws(() => read(folder), { message: /b\.yaml is a link to a file outside of/ })
})

t.test('a role with an unknown permission is a fault, whatever the brand', async (t) => {
  const folder = folderFor(t)
  const role = (...permissions: string[]) =>
    folder.write(
      'r.yaml',
      `kind: role\nkey: r\nname: r\npermissions: ${JSON.stringify(permissions)}\n`,
    )
  role('service.project.veiw', 'project.view', 'acme.organization.admin', 'actions.execute.A!')
  t.match(read(folder).faults, [
    /permissions\[0\]: there is no such permission/,
    /permissions\[1\]: there is no such permission/,
    /permissions\[2\]: cannot be granted inside a project/,
    /permissions\[3\]: there is no such permission/,
  ])
  t.match(read(folder).faults[0], /^r\.yaml:4:/)
  role('service.project.view', 'acme.runs.operate', 'actions.execute.*', 'actions.execute.crm.*')
  t.strictSame(read(folder).faults, [])
})

t.test('standard input, single files and missing paths', async (t) => {
  const folder = folderFor(t)
  const a = folder.write('a.yaml', agent('a'))
  const bytes = new TextEncoder().encode(agent('b'))
  const [blueprint] = readBlueprints([a, '-', a], {}, {}, () => bytes)
  t.strictSame(
    blueprint?.resources.map(({ located }) => (located.value as { key: string }).key),
    ['a', 'b'],
    'a file that is named twice is read once',
  )
  t.throws(() => findFiles([join(folder.path, 'none')], () => bytes), { message: /does not exist/ })
  t.throws(() => readBlueprints(['-'], {}, {}, () => Uint8Array.of(0xff)), { message: /UTF-8/ })
  t.throws(() => readBlueprints(['-'], {}, {}, () => Uint8Array.of()), {
    message: '- contains no blueprint.',
  })
  const empty = folderFor(t)
  t.throws(() => findFiles([empty.path], () => bytes), { message: /contains no \.yaml/ })
})
