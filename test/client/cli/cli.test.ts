/**
 * The command line: commands derived from the table, conversion of texts to values, and error
 * messages.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import t from 'tap'
import { addClientCommands } from '../../../client/cli/commands.ts'
import { connectionOf } from '../../../client/cli/connection/connection.ts'
import { callable, catalog, describeFields, exampleOf } from '../../../client/cli/derived.ts'
import { explain } from '../../../client/cli/explain.ts'
import { type Field, fieldsOf, inputOf, readValue, slotsOf } from '../../../client/cli/fields.ts'
import { Mistake } from '../../../client/cli/mistake.ts'
import { lineOf } from '../../../client/cli/timeline.ts'
import { actionsOf } from '../../../client/cli/work.ts'
import { BatonError } from '../../../client/errors.ts'
import { WorkerError } from '../../../client/worker/options.ts'
import { api } from '../../../protocol/api.ts'
import type { Row } from '../../../protocol/contract.ts'

const field = (row: Row, name: string): Field =>
  fieldsOf(row).find((one) => one.name === name) as Field
const noFile = (): string => {
  throw new Error('no file is read')
}

function program() {
  const printed: string[] = []
  const notes: string[] = []
  const errors: unknown[] = []
  const root = new Command('baton').exitOverride().configureOutput({
    writeOut: (text) => printed.push(text),
    writeErr: (text) => notes.push(text),
  })
  addClientCommands(
    root,
    {},
    {
      env: {},
      print: (line) => printed.push(line),
      note: (line) => notes.push(line),
      guarded:
        (action) =>
        async (...given) => {
          await action(...given).catch((error: unknown) => errors.push(error))
        },
    },
  )
  for (const command of allOf(root))
    command.exitOverride().configureOutput({
      writeOut: (text) => printed.push(text),
      writeErr: (text) => notes.push(text),
    })
  return {
    root,
    printed,
    notes,
    errors,
    run: (...words: string[]) => root.parseAsync(words, { from: 'user' }),
  }
}
const allOf = (command: Command): Command[] =>
  command.commands.flatMap((child) => [child, ...allOf(child)])

t.test('every command and query of the table is a command, in both forms', async (t) => {
  const { root } = program()
  const known = new Set(allOf(root).map((command) => `${command.parent?.name()} ${command.name()}`))
  for (const [name, row] of Object.entries(api) as [string, Row][]) {
    if (row.verb !== 'command' && row.verb !== 'query') continue
    const [group = '', operation = ''] = name.split('.')
    t.ok(known.has(`${group} ${operation.replaceAll('_', '-')}`), name)
    t.ok(known.has(`call ${name}`))
  }
})

t.test('the help of every command has an example', async (t) => {
  for (const command of allOf(program().root)) {
    if (command.commands.length > 0 && !['worker', 'call'].includes(command.name())) continue
    let help = ''
    command
      .configureOutput({
        writeOut: (text) => {
          help += text
        },
      })
      .outputHelp()
    t.match(help, /Examples?:\n\s+\$ baton /, `${command.parent?.name()} ${command.name()}`)
  }
})

t.test('options are derived from the schema', async (t) => {
  t.match(field(api['run.list'], 'status'), {
    form: 'list',
    choices: ['queued', 'running', 'suspended', 'completed', 'failed', 'cancelled'],
    required: false,
  })
  t.match(field(api['run.list'], 'limit'), { form: 'whole', help: '1 to 200; default 20' })
  t.match(field(api['run.start'], 'input'), { form: 'json' })
  t.match(field(api['workflow.create'], 'spec'), { form: 'json', required: true })
  t.match(field(api['workflow.versions'], 'include_spec'), { form: 'boolean' })
  t.match(field(api['key.create_organization'], 'role'), { form: 'text', choices: /./ })
  t.strictSame(slotsOf('run.get', api['run.get']), ['id'])
  t.strictSame(
    slotsOf('project.delete', api['project.delete']),
    ['project'],
    'which project to delete is never taken from a default',
  )
})

t.test('texts are converted to values, and an invalid one is reported in a sentence', async (t) => {
  const value = (row: Row, name: string, text: string, read: (file: string) => string = noFile) =>
    readValue(field(row, name), text, read)
  t.strictSame(value(api['channel.update'], 'topic', 'Lunch'), { value: 'Lunch' })
  t.strictSame(
    value(api['channel.update'], 'topic', 'null'),
    { value: null },
    'where null takes the value away',
  )
  t.strictSame(value(api['run.list'], 'status', 'running, failed'), {
    value: ['running', 'failed'],
  })
  t.match(value(api['run.list'], 'status', 'running,lost'), {
    fault: /must contain only .*not "lost"/,
  })
  t.strictSame(value(api['run.list'], 'limit', '5'), { value: 5 })
  t.match(value(api['run.list'], 'limit', '5.5'), { fault: /whole number/ })
  t.match(value(api['run.list'], 'limit', ''), { fault: /whole number/ })
  t.strictSame(value(api['run.start'], 'input', '{"a":1}'), { value: { a: 1 } })
  t.strictSame(
    value(api['run.start'], 'input', '@in.json', (file) => `{"from":"${file}"}`),
    { value: { from: 'in.json' } },
  )
  t.match(value(api['run.start'], 'input', '{a:1}'), { fault: /is not JSON/ })
  t.strictSame(value(api['workflow.versions'], 'include_spec', 'true'), { value: true })
  t.match(value(api['workflow.versions'], 'include_spec', 'yes'), { fault: /true or false/ })
})

t.test('--set and --body form one input', async (t) => {
  const make = (sets: string[], body?: unknown) =>
    inputOf(fieldsOf(api['run.signal']), ['id'], sets, body, noFile)
  t.strictSame(
    make(['id=run_1', 'name=go', 'payload={"n":1}', 'idempotency-key=a=b'], { name: 'old' }),
    { input: { name: 'go', id: 'run_1', payload: { n: 1 }, idempotency_key: 'a=b' } },
  )
  t.match(make(['id=run_1', 'nome=go']), {
    fault: /no field nome; the available fields are id, name/,
  })
  t.match(make(['name=go']), { fault: /id must be set/ })
  t.match(make(['name']), { fault: /field=value/ })
  t.match(make(['id=run_1'], [1]), { fault: /JSON object/ })
})

t.test('short forms and calls send the same request', async (t) => {
  const sent: { url: string; body: unknown; key: unknown }[] = []
  const real = globalThis.fetch
  t.teardown(() => {
    globalThis.fetch = real
  })
  globalThis.fetch = (async (url: string, init: RequestInit) => {
    sent.push({
      url,
      body: init.body && (JSON.parse(String(init.body)) as unknown),
      key: (init.headers as Record<string, string>)['idempotency-key'],
    })
    return new Response('{"ok":true}', { status: 200 })
  }) as typeof fetch
  const { run, printed, errors } = program()
  const at = ['--key', 'k', '--project', 'shop', '--server', 'http://c.test']
  await run('run', 'signal', 'run_1', '--name', 'go', '--payload', '{"n":1}', ...at)
  await run(
    'call',
    'run.signal',
    '--set',
    'id=run_1',
    '--set',
    'name=go',
    '--set',
    'payload={"n":1}',
    ...at,
  )
  await run('run', 'list', '--status', 'running', '--status', 'failed,queued', ...at)
  await run('worker', 'list', ...at)
  await run('workflow', 'versions', 'wf', '--include-spec', ...at)
  t.strictSame(errors, [])
  for (const one of sent.slice(0, 2))
    t.match(one, {
      url: 'http://c.test/v1/projects/shop/runs/run_1/signals',
      body: { name: 'go', payload: { n: 1 } },
      key: /./,
    })
  t.equal(
    sent[2]?.url,
    'http://c.test/v1/projects/shop/runs?status=running%2Cfailed%2Cqueued&include=name%2Cdescription',
  )
  t.equal(
    sent[3]?.url,
    'http://c.test/v1/projects/shop/workers?include=gateway%2Cdraining%2Cslots_free%2Cjobs',
  )
  t.equal(sent[4]?.url, 'http://c.test/v1/projects/shop/workflows/wf/versions?include_spec=true')
  t.equal(printed[0], '{\n  "ok": true\n}')
})

t.test(
  'an unreadable file is a fault of its option; a readable one is sent in base64',
  async (t) => {
    const folder = t.testdir({ 'note.md': 'a note' })
    await t.rejects(program().run('session', 'attach', 'ses_1', '--file', join(folder, 'none')), {
      code: 'commander.invalidArgument',
      message: /none cannot be read/,
    })
    await t.rejects(program().run('run', 'start', '--input', '@/nowhere.json'), {
      code: 'commander.invalidArgument',
      message: /nowhere.json cannot be read/,
    })
    t.strictSame(
      readValue(
        field(api['session.attach'], 'file'),
        'note.md',
        (file, encoding) => `${file} ${encoding}`,
      ),
      { value: 'note.md base64' },
    )
  },
)

t.test('`call` lists the operations, and the help of each lists its fields', async (t) => {
  const { run, printed } = program()
  await run('call')
  t.equal(printed[0], catalog())
  t.match(catalog(), /run\.start +Start a run of a workflow or of an inline spec\n/)
  t.notMatch(catalog(), /project_steps/, 'older forms are not advertised')
  t.match(
    describeFields('run.signal', api['run.signal']),
    / id +text {2}required\n {2}name +text\n/,
  )
  for (const [name, row] of callable)
    t.ok(exampleOf(name, row).startsWith(`${name.split('.')[0]} `))
})

t.test(
  'the key comes from the flag, the environment, or the data folder of a local server',
  async (t) => {
    const data = t.testdir({ 'root.key': 'bat_root\n' })
    t.strictSame(connectionOf({}, { BATON_DATA: data }), {
      url: ['http://127.0.0.1:8080'],
      key: 'bat_root',
      project: 'default',
    })
    t.strictSame(
      connectionOf(
        { server: 'http://a:1, http://b:2' },
        { BATON_KEY: 'k', BATON_PROJECT: 'p', BATON_DATA: data },
      ),
      { url: ['http://a:1', 'http://b:2'], key: 'k', project: 'p' },
    )
    t.strictSame(
      connectionOf(
        { key: 'mine', project: 'q' },
        { BATON_URL: 'http://c:3', BATON_KEY: 'k', BATON_PROJECT: 'p' },
      ),
      { url: ['http://c:3'], key: 'mine', project: 'q' },
    )
    t.throws(() => connectionOf({}, { BATON_DATA: join(data, 'none') }), {
      name: 'Mistake',
      message: /--key.*npm start/,
    })
    t.throws(() => connectionOf({ server: 'localhost:8080', key: 'k' }, {}), Mistake)
    const cluster = t.testdir({})
    mkdirSync(join(cluster, 'cluster'))
    writeFileSync(join(cluster, 'cluster', 'root.key'), 'bat_cluster')
    t.match(connectionOf({}, { BATON_DATA: cluster }), { key: 'bat_cluster' })
  },
)

t.test('errors suggest the next step', async (t) => {
  const told = (error: unknown) => explain(error, {})
  t.match(
    told(new BatonError(0, 'unreachable', 'http://a does not respond: ECONNREFUSED')),
    /ECONNREFUSED\n.*npm start/,
  )
  t.match(told(new BatonError(404, 'not_found', 'There is no such path.')), /\n.*may be older/)
  t.match(
    told(new BatonError(401, 'unauthorized', 'The credential is unknown.')),
    /unauthorized: The credential is unknown.\nPass a key with --key or BATON_KEY.*\.baton\/root\.key/,
  )
  t.match(
    told(
      new BatonError(400, 'bad_request', 'Not valid.', {
        fields: [{ field: 'spec.steps', message: 'must not be empty' }],
      }),
    ),
    /\n {2}spec\.steps: must not be empty\n.*--help/,
  )
  t.match(
    told(new BatonError(409, 'conflict', 'No.', { status: 'completed' })),
    /conflict: No\.\n {2}\{"status":"completed"\}$/,
  )
  t.match(told(new BatonError(500, 'internal', 'Oh.', undefined, 'req_1')), /Request id: req_1/)
  t.match(told(new WorkerError('refused', 'No such key (401 from ws://x)', 401)), /root\.key/)
  t.match(
    told(new WorkerError('refused', 'The project does not exist (404 from ws://x)', 404)),
    /ws:\/\/x\)\. Check --project; `baton project list`/,
  )
  t.match(told(new WorkerError('refused', 'No permission', 403)), /`baton permission list`/)
  t.equal(told(new WorkerError('refused', 'ws://x cannot be dialled')), 'ws://x cannot be dialled.')
  t.equal(told(new Error('a bug')), undefined, 'an unexpected error keeps its stack')
})

t.test('`worker` selects stock actions by name', async (t) => {
  t.strictSame(Object.keys(actionsOf(undefined)), ['print', 'fail', 'json', 'time', 'random'])
  t.strictSame(Object.keys(actionsOf('time, print')), ['print', 'time'])
  t.throws(() => actionsOf('print,sing'), /sing.*Available: print/)
})

t.test('an event of a timeline is printed as one line', async (t) => {
  const line = lineOf({
    id: 'run_1:evt:2',
    run_id: 'run_1',
    sequence: 2,
    event_type: 'step.failed',
    step_key: 'mail',
    payload: { step: 'mail', error: 'no route', error_type: 'NoRoute' },
    created_at: '2031-02-03T04:05:06.007Z',
  })
  t.equal(line, '04:05:06.007  step.failed       mail          error="no route" error_type=NoRoute')
  const hostile = lineOf({
    id: 'x',
    run_id: 'r',
    sequence: 1,
    event_type: 'run.failed',
    payload: { '\u009d0;key': '\u009b2Jgone' },
    created_at: '2031-02-03T04:05:06.007Z',
  })
  t.match(hostile, /\\u009d0;key="\\u009b2Jgone"$/, 'no control sequence reaches the terminal')
  t.ok(
    lineOf({
      id: 'x',
      run_id: 'r',
      sequence: 1,
      event_type: 'run.completed',
      payload: { output: { long: 'x'.repeat(500) } },
      created_at: '2031-02-03T04:05:06.007Z',
    }).length < 180,
  )
})

t.test('the server address and the fields of an operation have distinct options', async (t) => {
  const sent: string[] = []
  const real = globalThis.fetch
  t.teardown(() => {
    globalThis.fetch = real
  })
  globalThis.fetch = (async (url: string, init: RequestInit) => {
    sent.push(`${url} ${String(init.body)}`)
    return new Response('{"id":"wbh_1"}', { status: 201 })
  }) as typeof fetch
  const hook = ['webhook', 'create', '--name', 'w', '--url', 'https://receiver.test/hook']
  await program().run(...hook, '--server', 'http://baton.test', '--key', 'k')
  t.match(sent[0], /^http:\/\/baton\.test\/v1\/.*"url":"https:\/\/receiver\.test\/hook"/)
  await t.rejects(program().run('run', 'list', '--url', 'http://baton.test', '--key', 'k'), {
    code: 'commander.unknownOption',
  })
})

t.test('`apply` reports a missing file before a missing terminal', async (t) => {
  const { run, errors } = program()
  await run('apply', '-f', '/no/such/file')
  t.match(errors, [{ name: 'Mistake', message: '/no/such/file does not exist.' }])
})

t.test('`streams` names the form of a topic without its id, or with one too many', async (t) => {
  for (const [topic, message] of [
    ['run', /The topic run needs an id: run=<id>\./],
    ['channel=', /The topic channel needs an id: channel=<id>\./],
    ['runs=run_1', /The topic runs has no id\./],
    ['ruins', /It must begin with one of: run, runs, /],
  ] as const)
    await t.rejects(program().run('streams', topic, '--key', 'k'), {
      code: 'commander.invalidArgument',
      message,
    })
})
