/**
 * Output formats, suggestions for misspelled words, names in place of ids, and shell completion.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { Command } from 'commander'
import fc from 'fast-check'
import t from 'tap'
import { parse } from 'yaml'
import { addClientCommands } from '../../../client/cli/commands.ts'
import { CommandWithFlags } from '../../../client/cli/completion.ts'
import { resolveNames } from '../../../client/cli/names.ts'
import { formatReply, isFormat, itemsOf } from '../../../client/cli/output.ts'
import { addHelp, oneLineErrors } from '../../../client/cli/usage.ts'
import { closest } from '../../../client/suggest.ts'
import { Transport } from '../../../client/transport.ts'
import { api } from '../../../protocol/api.ts'

const runs = {
  items: [
    {
      definition_version: 1,
      id: 'run_01',
      status: 'failed',
      error_message: 'x'.repeat(200),
      input: { a: 1 },
      created_at: '2031-02-03T04:05:06.007Z',
      tags: ['a', 'b'],
    },
    { id: 'run_02', status: 'queued', created_at: '2031-02-03T05:05:06.007Z' },
  ],
  has_more: false,
}

t.test('a list is a table with the columns that fit', async (t) => {
  const lines = formatReply(runs, 'table', 60, 'UTC').split('\n')
  t.match(lines[0], /^ID +STATUS +CREATED AT/)
  t.match(lines[1], /^run_01 +failed +2031-02-03 04:05:06/)
  t.match(lines[2], /^run_02 +queued +2031-02-03 05:05:06$/)
  t.ok(lines.every((line) => line.length <= 60))
  const wide = formatReply(runs, 'wide', 60, 'UTC')
  t.match(wide, /x{200}/, 'nothing is cut when everything is asked for')
  t.match(wide, /a,b/)
  const item = { id: 'a', is_ready: false, size: 1, created_at: '2031-02-03T05:05:06.007Z' }
  t.match(formatReply({ items: [item] }, 'table', 80), /^ID +CREATED AT +SIZE +IS READY/)
  t.notMatch(wide, /INPUT/, 'nested values are only in json and yaml')
})

t.test('text from others cannot move the cursor of the terminal', async (t) => {
  const item = { id: 'a', name: '\u001b[2Jgone\nnext', list: ['\u001b]0;title', 'one\ntwo'] }
  const text = formatReply({ items: [item] }, 'table', 80)
  t.notMatch(text, /\u001b/)
  t.equal(text.split('\n').length, 2)
})

t.test('yaml without control characters has the same content', async () => {
  const text = fc
    .string({ unit: fc.constantFrom(...'a: -#"\n\t\u001b\u007f\u0085\u009b\u009d') })
    // `yaml` 2.x reads another text than it writes if a text is white space with a line break.
    .filter((one) => !/^[ \t\n]*\n[ \t\n]*$/.test(one))
  fc.assert(
    fc.property(fc.dictionary(text, text, { noNullPrototype: true }), (record) => {
      const yaml = formatReply(record, 'yaml', 80)
      return !/[^\P{Cc}\n\t]/u.test(yaml) && isDeepStrictEqual(parse(`${yaml}\n`), record)
    }),
    { numRuns: 300 },
  )
})

t.test('json and yaml contain everything', async (t) => {
  t.strictSame(JSON.parse(formatReply(runs, 'json', 20)), runs)
  t.equal(formatReply('\u009b\u007f', 'json', 20), '"\\u009b\\u007f"')
  t.match(formatReply(runs, 'yaml', 20), /^items:\n {2}- definition_version: 1\n/)
  t.equal(itemsOf({ id: 'run_01' }), undefined)
})

t.test('one field is plain text, one line per record', async (t) => {
  t.equal(formatReply(runs, 'field=id', 20), 'run_01\nrun_02')
  t.equal(formatReply(runs.items[0], 'field=input.a', 20), '1')
  t.equal(formatReply(runs.items[0], 'field=tags', 20), '["a","b"]')
  t.equal(formatReply(runs, 'field=input.a', 20), '1\n', 'the field is optional')
  t.equal(formatReply({ items: [] }, 'field=input', 20), '')
  t.throws(() => formatReply(runs, 'field=nothing', 20), /no field nothing\. Its fields are: /)
  t.throws(() => formatReply(runs.items[1], 'field=input', 20), {
    name: 'Mistake',
    message: 'The response has no field input. Its fields are: id, status, created_at.',
  })
  for (const name of ['__proto__', 'id.length', 'constructor'])
    t.throws(() => formatReply(runs.items[1], `field=${name}`, 20), /has no field/)
  t.strictSame(['table', 'field=id', 'field=', 'text'].map(isFormat), [true, true, false, false])
})

t.test('the closest word is suggested if it is close enough', async (t) => {
  t.equal(closest('supprot', ['support', 'sales']), 'support')
  t.equal(closest('Support', ['support']), 'support')
  t.equal(closest('billing', ['support', 'sales']), undefined)
})

t.test('names are resolved to ids', async (t) => {
  const agents = [
    { id: 'agt_01M8066DA0XZ9JH6CC5Q8B059D', name: 'support' },
    { id: 'agt_01M8066DA0XZ9JH6CC5Q8B059E', name: 'twin' },
    { id: 'agt_01M8066DA0XZ9JH6CC5Q8B059F', name: 'twin' },
    { id: 'agt_01M8066DA0XZ9JH6CC5Q8B059G', name: 'team: support' },
  ]
  const asked: string[] = []
  const transport = new Transport({
    url: 'http://a.test',
    key: 'k',
    fetch: (async (url: string) => {
      asked.push(url)
      if (url.includes('/users'))
        return new Response('{"error":{"code":"permission_denied","message":"No."}}', {
          status: 403,
        })
      return Response.json({ items: agents, has_more: false })
    }) as typeof fetch,
  })
  const get = (id: string) => resolveNames(transport, 'agent.get', api['agent.get'], { id })
  t.strictSame(await get('support'), { id: agents[0]?.id })
  t.strictSame(await get(agents[1]?.id ?? ''), { id: agents[1]?.id })
  t.equal(asked.length, 1, 'an id is not looked up')
  t.strictSame(await get('team: support'), { id: agents.at(-1)?.id })
  await t.rejects(get('twin'), { name: 'Mistake', message: /2 agents: agt_.*E, agt_.*F/ })
  await t.rejects(get('supprot'), { name: 'Mistake', message: /Did you mean "support"/ })
  t.strictSame(
    await resolveNames(transport, 'interaction.create', api['interaction.create'], {
      target_user_ids: ['role:Operator', 'ada'],
    }),
    { target_user_ids: ['role:Operator', 'ada'] },
    'roles and names that cannot be listed are sent as they are',
  )
})

/** Creates a transport whose service answers lists of principals with `reply`, and others empty. */
const withPrincipals = (reply: (parameters: URLSearchParams) => Response): Transport =>
  new Transport({
    url: 'http://a.test',
    key: 'k',
    fetch: (async (url: string) => {
      const { pathname, searchParams } = new URL(url)
      return pathname.endsWith('/principals')
        ? reply(searchParams)
        : Response.json({ items: [], has_more: false })
    }) as typeof fetch,
  })

t.test('a principal is found by its name on a later page', async (t) => {
  const pages = [
    { items: [{ id: 'svc_1', name: 'first' }], has_more: true, next_cursor: 'c1' },
    { items: [{ id: 'svc_2', name: 'second' }], has_more: false },
  ]
  const transport = withPrincipals((searchParams) => {
    t.equal(searchParams.get('include'), 'next_cursor')
    return Response.json(pages[searchParams.get('cursor') === 'c1' ? 1 : 0])
  })
  t.strictSame(
    await resolveNames(transport, 'assignment.list', api['assignment.list'], {
      principal_id: 'second',
    }),
    { principal_id: 'svc_2' },
  )
})

t.test('a principal is found by its name on an older service without pages', async (t) => {
  const transport = withPrincipals((searchParams) => {
    const details = { fields: [{ field: 'include', message: 'is not a known parameter' }] }
    const error = { code: 'bad_request', message: 'include', details }
    return searchParams.has('include')
      ? Response.json({ error }, { status: 400 })
      : Response.json({ items: [{ id: 'svc_1', name: 'first' }] })
  })
  const list = (principal_id: string) =>
    resolveNames(transport, 'assignment.list', api['assignment.list'], { principal_id })
  t.strictSame(await list('first'), { principal_id: 'svc_1' })
  await t.rejects(list('frist'), { name: 'Mistake', message: /Did you mean "first"/ })
})

/** Returns the completion script of a program for a shell. */
async function completionOf(shell: string, program = new Command('baton')): Promise<string> {
  const printed: string[] = []
  addClientCommands(
    program,
    {},
    {
      env: {},
      print: (line) => printed.push(line),
      note: () => {},
      guarded: (action) => action,
    },
  )
  await program.parseAsync(['completion', shell], { from: 'user' })
  return printed[0] ?? ''
}

t.test('bash completes commands and flags', async (t) => {
  const program = new Command('baton')
  program.addCommand(new CommandWithFlags('node', ['--port', '--log-level']))
  const script = await completionOf('bash', program)
  const file = join(t.testdir({}), 'baton.bash')
  writeFileSync(
    file,
    `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _baton; echo "\${COMPREPLY[@]}"\n`,
  )
  const complete = (...words: string[]) =>
    spawnSync('bash', [file, ...words], { encoding: 'utf8' })
      .stdout.trim()
      .split(' ')
  t.ok(complete('baton', 'ru').includes('run'))
  t.ok(complete('baton', 'run', '').includes('start'))
  t.ok(complete('baton', 'run', 'start', '--in').includes('--input'))
  t.ok(complete('baton', 'run', 'start', '--input', '{}', '--ser').includes('--server'))
  t.notOk(complete('baton', 'run', '').includes('project-steps'), 'older forms are hidden')
  t.strictSame(complete('baton', 'node', '--lo'), ['--log-level'], 'settings')
  t.strictSame(complete('baton', 'run', 'list', '--status', 'f'), ['failed'])
  t.strictSame(complete('baton', 'run', 'list', '--status', '=', 'f'), ['failed'])
  t.strictSame(complete('baton', 'run', 'list', '--order', '='), ['asc', 'desc'])
  t.strictSame(complete('baton', 'run', 'list', '-o', 'y'), ['yaml'])
  t.strictSame(complete('baton', 'run', 'start', '--input', ''), [''], 'files of the shell')
  t.ok(complete('baton', 'follow', '--json', '--af').includes('--after'), 'a flag without a value')
})

t.test('zsh and fish get the values of flags, and zsh its completion system', async (t) => {
  const zsh = await completionOf('zsh')
  t.match(
    zsh,
    /^\(\( \$\+functions\[compdef\] \)\) \|\| \{ autoload -Uz compinit && compinit; \}\n/,
  )
  t.notMatch(zsh, /:1:[A-Za-z]/, 'zsh reads a letter after the colon as a modifier')
  t.match(zsh, /'run list'\) .* choices='.*--order=asc,desc /)
  const fish = (await completionOf('fish')).split('\n').filter((line) => line.includes('from list'))
  const runs = fish.filter((line) => line.includes('from run;'))
  t.ok(runs.some((line) => line.endsWith("-l format -s o -x -a 'table wide json yaml'")))
  t.ok(runs.some((line) => line.endsWith('-l queue -r')))
  t.ok(runs.some((line) => line.endsWith('-l help -s h')))
})

t.test('a mistake is one line with the closest word and where to look', async (t) => {
  const errors: string[] = []
  const program = new Command('baton').exitOverride().configureOutput({
    writeErr: (text) => errors.push(text),
  })
  const silent = { env: {}, print: () => {}, note: () => {}, guarded: (action: never) => action }
  addClientCommands(program, {}, silent)
  oneLineErrors(program)
  const line = async (...words: string[]) => {
    errors.length = 0
    await t.rejects(program.parseAsync(words, { from: 'user' }))
    return errors.join('')
  }
  t.match(
    await line('rnu'),
    /^error: unknown command 'rnu' \(Did you mean run\?\) See: baton --help\n$/,
  )
  t.match(
    await line('run', 'list', '--stauts', 'failed'),
    /^error: .*\(Did you mean --status\?\) See: baton run list --help\n$/,
  )
  t.match(await line('run', 'get'), /^error: .*'id' See: baton run get --help\n$/)
  t.match(await line('run', 'list', '--json'), /'--json' Write -o json\. See: baton run list/)
})

function helpOf() {
  const printed: string[] = []
  const program = new Command('baton')
  addClientCommands(program, {})
  addHelp(program)
  const override = (command: Command): void => {
    command.exitOverride().configureOutput({
      writeOut: (text) => printed.push(text),
      writeErr: (text) => printed.push(text),
    })
    command.commands.forEach(override)
  }
  override(program)
  oneLineErrors(program)
  return {
    printed,
    run: (...words: string[]) => program.parseAsync(words, { from: 'user' }),
  }
}

t.test('`help` shows the help of a command, given by its whole path', async (t) => {
  for (const [path, usage] of [
    [[], 'baton [options] [command]'],
    [['run'], 'baton run [options] [command]'],
    [['workflow', 'create'], 'baton workflow create [options]'],
    [['call', 'run.start'], 'baton call run.start [options]'],
  ] as const) {
    const { run, printed } = helpOf()
    await run('help', ...path)
    t.equal(printed.join('').split('\n')[0], `Usage: ${usage}`)
  }
})

t.test('`help` of an unknown command is an error', async (t) => {
  for (const [path, message] of [
    [['nope'], "error: unknown command 'nope' See: baton --help\n"],
    [
      ['wrokflow'],
      "error: unknown command 'wrokflow' (Did you mean workflow?) See: baton --help\n",
    ],
    [
      ['workflow', 'creat'],
      "error: unknown command 'creat' (Did you mean create?) See: baton workflow --help\n",
    ],
  ] as const) {
    const { run, printed } = helpOf()
    await t.rejects(run('help', ...path), { code: 'commander.error' })
    t.strictSame(printed, [message])
  }
})

t.test('`call` names an unknown operation, and the closest operation', async (t) => {
  for (const [words, message] of [
    [['foo'], "error: unknown operation 'foo'"],
    [
      ['run.strat', '--set', 'a=1'],
      "error: unknown operation 'run.strat' (Did you mean run.start?)",
    ],
    [['--foo', 'bar'], "error: unknown option '--foo'"],
  ] as const) {
    const { run, printed } = helpOf()
    await t.rejects(run('call', ...words), { code: 'commander.error' })
    t.strictSame(printed, [`${message} See: baton call --help\n`])
  }
})

t.test('the error for a connection flag before the operation states its place', async (t) => {
  for (const flag of ['--server', '--key', '--project', '--profile']) {
    const { run, printed } = helpOf()
    await t.rejects(run(flag, 'x', 'run', 'list'), { code: 'commander.unknownOption' })
    t.strictSame(printed, [
      `error: unknown option '${flag}' Write ${flag} after the operation, as in: ` +
        `baton run list ${flag} <value>. See: baton --help\n`,
    ])
  }
})
