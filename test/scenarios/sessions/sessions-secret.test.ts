/**
 * A principal that may not read a private session receives none of its content, in any response.
 */
import t from 'tap'
import type { RowName } from '../../../protocol/api.ts'
import { service } from '../../support/service.ts'
import { artifactClient } from '../artifacts/client.ts'
import { ended, type Found, instant, listOf, until } from '../support/given.ts'
import { editor, person } from '../support/people.ts'
import { reading, Walk } from '../support/walk.ts'

const s = await service()
const SECRET = 'Xylophone'

/** A worker whose results contain the secret. */
const worker = await s.worker({ action_names: ['vault.open', 'vault.close'] })
t.teardown(async () => {
  worker.close()
  await s.stop()
})
/** Number of calls that the worker receives: two in each of two conversations. */
const CALLS = 4
const working = (async () => {
  for (let call = 0; call < CALLS; call++)
    await worker.report(await worker.job(), { status: 'completed', result: { word: SECRET } })
})()
for (const [name, destructive] of [
  ['vault.open', false],
  ['vault.close', true],
] as const)
  await s.ok('action.create', { name, endpoint_kind: 'worker', annotations: { destructive } })
const toolkit = await s.ok('toolkit.create', {
  name: 'vault',
  actions: [{ selector_type: 'wildcard', selector: 'vault.*' }],
})
/** An agent that passes the secret to an action that requires approval. */
const keeper = await s.ok('agent.create', {
  name: 'keeper',
  tool_presentation: 'flat',
  system_prompt: `script:
  - when: {after: vault.open}
    say: "It is {{result.word}}"
    call: {vault.close: {code: "{{result.word}}"}}
  - when: {after: vault.close}
    say: Done.
  - call: {vault.open: {}}
`,
})
await s.ok('agent.assign_toolkits', { id: keeper['id'], toolkit_ids: [toolkit['id']] })
const ann = await editor(s, 'ann')
const { id: role_id } = await s.ok('role.create', {
  name: 'Auditor',
  permissions: [
    'project.view',
    'project.edit',
    'runs.operate',
    'agent.invoke',
    'access.manage',
  ].map((permission) => `service.${permission}`),
})
const auditor = await person(s, 'auditor', String(role_id))

async function approve(session_id: string): Promise<void> {
  const [asked] = await until(
    async () => listOf(await s.ok('interaction.list', { session_id })),
    (all) => all.length > 0,
  )
  await s.ok('interaction.respond', { id: asked?.['id'], value: true, comment: SECRET })
}
async function talk(): Promise<string> {
  const { session, turn } = (await ann.ok('agent.invoke', {
    agent_ref: { id: keeper['id'] },
    session: { session_key: 'vault', title: SECRET, visibility: 'private' },
    input: { content: [{ type: 'text', text: `${SECRET} said` }] },
  })) as unknown as Record<'session' | 'turn', { id: string }>
  const at = { session_id: session.id }
  await ann.ok('session.attach', { ...at, name: `${SECRET}.txt`, file: 'eA==' })
  await ann.ok('session.nudge', { ...at, content: `${SECRET} nudged` })
  await approve(session.id)
  await until(
    () => ann.ok('session.turn', { ...at, turn_id: turn.id }),
    ({ status }) => status === 'completed',
  )
  return session.id
}
async function run(): Promise<Found> {
  const session = { name: 'step', visibility: 'private' }
  const config = { agent_id: keeper['id'], instructions: 'Open it', session }
  const spec = { steps: [{ id: 'ask', kind: 'agent', config }] }
  const { id } = await s.ok('run.start', { spec })
  const [step] = await until(
    async () => listOf(await s.ok('run.steps', { id })),
    ([one]) => one?.['session_id'] !== undefined,
  )
  await approve(String(step?.['session_id']))
  return ended(s, id)
}

/**
 * Creates records of the kinds that the conversations of this file do not create, so that every
 * read operation has a record to return.
 */
async function furnish(): Promise<void> {
  const { id: channel_id } = await s.ok('channel.create', { name: 'talk' })
  const { id: user_id } = await s.ok('user.create', { name: 'Uma', email: 'uma@example.com' })
  const { id: table_id } = await s.ok('table.create', {
    name: 'orders',
    schema: {
      identity_column: 'name',
      columns: [{ name: 'name', type: 'string', required: true }],
    },
  })
  await Promise.all([
    s.ok('channel.send', { id: channel_id, content: 'hello' }),
    s.ok('row.insert', { id: table_id, data: { name: 'A-1' } }),
    artifactClient(s.url, s.key).put('orders.txt', Buffer.from('A-1')),
    s.ok('token.create', { id: user_id, name: 'laptop' }),
    s.ok('workflow.create', { name: 'flow', spec: instant() }),
    s.ok('webhook.create', { name: 'hook', url: 'https://receiver.invalid/' }),
    s.ok('loop.create', { name: 'loop', ...instant() }),
    s.ok('saved_view.create', { name: 'mine', list: 'runs', filter: {} }),
    s.ok('skill.create', { name: 'skill', instructions: 'x' }),
    s.ok('skill.create_organization', { name: 'shared', instructions: 'x' }),
    s.ok('environment.create', { name: 'box' }),
    s.ok('blueprint.apply', {
      blueprint_key: 'bound',
      resources: { skills: [{ key: 'bound', name: 'Bound', instructions: 'x' }] },
    }),
    s.ok('repository_host.put', {
      host_name: 'git',
      kind: 'token',
      url: 'http://127.0.0.1:9',
      read_token: 'read',
    }),
    s.ok('organization_action.create', {
      name: 'shared.act',
      endpoint_url: 'https://calls.invalid/',
    }),
  ])
}

t.test('no operation and no stream returns content of a private session', async (t) => {
  await furnish()
  const [session_id, { id }] = await Promise.all([talk(), run(), working])
  const [walk, shown] = await Walk.begin(s, s.key, SECRET)
  // The operations that return no record in this test. The first two list the caller's own
  // credentials, and no caller has any. `schedule.next` needs a schedule. There is no host that
  // could answer `environment.worker_logs`.
  const own: readonly RowName[] = [
    'cli_credential.list',
    'me.list_tokens',
    'schedule.next',
    'environment.worker_logs',
  ]
  const unread = reading.filter(
    ([name]) => !shown.some((one) => one.row === name && one.status === 200),
  )
  t.strictSame(
    unread.map(([name]) => name),
    own,
    'every operation returns a record',
  )
  const rowsWith = (answers: typeof shown, text: string): RowName[] =>
    [
      ...new Set(answers.filter((answer) => answer.text.includes(text)).map(({ row }) => row)),
    ].sort()
  t.ok(rowsWith(shown, SECRET).length > 10, 'an administrator reads the secret in many operations')
  const seen = await walk.again(s, auditor.key)
  t.strictSame(rowsWith(seen, SECRET), [])
  t.strictSame(rowsWith(seen, session_id), [])
  t.match(
    seen.find(({ row, path }) => row === 'run.get' && path.includes(String(id))),
    { status: 200, text: /Done\./ },
    'the run has received the answer',
  )
})
