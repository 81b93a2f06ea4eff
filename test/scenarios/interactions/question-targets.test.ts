/**
 * A question of a step or of a model is rejected if its targets do not exist, because no principal
 * could answer it.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, listOf, until } from '../support/given.ts'
import {
  agentOf,
  invoke,
  modelOf,
  placeOf,
  says,
  shown,
  text,
  turnIn,
  use,
} from '../support/talk.ts'

const s = await service()
t.setTimeout(120_000)
t.teardown(() => s.stop())

const ada = await s.ok('user.create', { name: 'Ada', email: 'ada@example.org' })
const gone = await s.ok('user.create', { name: 'Bo' })
await s.ok('user.update', { id: gone['id'], state: 'disabled' })
const role = await s.ok('role.create', { name: 'Deployer', permissions: ['service.project.view'] })
const { principal } = (await s.ok('me.get', {})) as unknown as { principal: { id: string } }
const root = principal.id

const asking = (targets: readonly unknown[], more: object = {}) => ({
  steps: [
    {
      id: 'ask',
      kind: 'interaction',
      config: { protocol: 'request_approval', title: 'Really?', targets, ...more },
    },
  ],
})

t.test('a step with unknown principals or roles as targets fails', async (t) => {
  for (const [targets, more, unknown] of [
    [['usr_nobody'], {}, 'usr_nobody'],
    [[ada['id'], 'usr_nobody', 'role:Nothing'], {}, 'usr_nobody, role:Nothing'],
    [[gone['id']], {}, gone['id']],
    [
      [ada['id']],
      { resolution_policy: { type: 'any_of', review: { reviewer_user_ids: ['usr_nobody'] } } },
      'usr_nobody',
    ],
  ] as const) {
    const { id } = await s.ok('run.start', { spec: asking(targets, more) })
    t.match(await ended(s, id), {
      status: 'failed',
      error_type: 'interaction_invalid',
      error_message: `targets: There is no such principal or role in the project: ${unknown}`,
    })
    t.match(listOf(await s.ok('interaction.list', { run_id: id })), [{ status: 'cancelled' }])
  }
})

t.test('principals, roles and principals of organization keys are valid targets', async (t) => {
  const targets = [ada['id'], root, 'role:Owner', 'role:Deployer', `role:${role['id']}`]
  const { id } = await s.ok('run.start', { spec: asking(targets) })
  const [asked] = await until(
    async () => listOf(await s.ok('interaction.list', { run_id: id })),
    ({ length }) => length === 1,
  )
  // The rejection of another question, whose target is unknown, leaves the first question open.
  const other = await s.ok('run.start', { spec: asking(['usr_nobody']) })
  t.match(await ended(s, other['id']), { status: 'failed' })
  t.match(await s.ok('interaction.respond', { id: asked?.['id'], value: true }), {
    status: 'completed',
  })
  t.match(await ended(s, id), { status: 'completed' })
})

t.test('a check gate with unknown targets fails with an invalid interaction', async (t) => {
  const { id } = await s.ok('run.start', {
    spec: {
      steps: [
        {
          id: 'look',
          kind: 'check',
          config: {
            checks: [{ name: 'no', kind: 'expr', expr: 'false' }],
            on_fail: 'gate',
            gate: { targets: ['usr_nobody'] },
          },
        },
      ],
    },
  })
  t.match(await ended(s, id), { status: 'failed', error_type: 'interaction_invalid' })
})

t.test('a model that asks an unknown principal gets an error result', async (t) => {
  const agent = await agentOf(s, 'asker')
  const model = await modelOf(s, 'asker')
  const ack = await invoke(s, agent, 'may I?')
  await says(model, [
    use('c1', 'service_ask_person', { title: 'Really?', target_user_ids: ['usr_nobody'] }),
  ])
  const next = await says(model, [text('Then not.')])
  t.match(shown(next).at(-1), /There is no such principal or role in the project: usr_nobody/)
  await turnIn(s, ack, 'completed')
  const { items } = (await s.ok('session.messages', {
    session_id: placeOf(ack).session_id,
  })) as unknown as { items: { content: object[] }[] }
  t.match(items[2]?.content, [{ tool_use_id: 'c1', is_error: true }])
  model.close()
})
