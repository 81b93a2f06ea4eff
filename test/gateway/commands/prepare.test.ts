/**
 * The data that a gateway adds to a command before sending it: secrets, handles and hashes of keys.
 * Also covers the checks of actions.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Call, Edge } from '../../../gateway/call.ts'
import { prepare } from '../../../gateway/prepare.ts'
import { createSecretBox } from '../../../nodes/storage/secret-box.ts'
import { systemRoles } from '../../../protocol/access/schema.ts'
import { api } from '../../../protocol/api.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { edge, ORG, PRJ, type TestEdge } from '../support/given.ts'

const spec = { steps: [{ kind: 'sleep', config: { duration: '1s' } }] }
const origin = { at: 0, principal: { type: 'user', id: 'user_1' } } as const
/** Prepares a row's command for a project. `seed` stands in for the request's idempotency key. */
const prepared = async (
  { world, directory }: TestEdge,
  name: keyof typeof api,
  project: string,
  body: object,
  seed?: string,
  slots: object = {},
) =>
  prepare(
    { world, directory } as Edge,
    {
      name,
      row: api[name],
      project: { id: project },
      body,
      slots,
      caller: { permissions: new Set(systemRoles.Admin) },
    } as unknown as Call,
    { command_id: seed ?? 'cmd', ...(seed !== undefined && { seed }) },
    origin,
  )

t.test('a key creation sends the hash; only the answer contains the key', async (t) => {
  const it = edge()
  const made = await prepared(it, 'key.create', PRJ, { name: 'k' })
  if (isRefusal(made)) return t.fail('refused')
  const key = String(made.reply?.['key'])
  it.change(PRJ, 'key.create', { name: 'k', ...made.input })
  t.match(await it.authenticate(`Bearer ${key}`), { credential: { name: 'k' } })
  t.notMatch(JSON.stringify(made.input), key)
  t.same(
    await prepared(it, 'key.create', PRJ, {}, 'seed'),
    await prepared(it, 'key.create', PRJ, {}, 'seed'),
    'a repeat makes the same key',
  )
  t.notSame(
    await prepared(it, 'key.create', PRJ, {}, 'seed'),
    await prepared(it, 'key.create_organization', PRJ, {}, 'seed'),
  )
})
t.test('each secret is new, and a repeat returns that of the remembered reply', async (t) => {
  const it = edge()
  const locks = createSecretBox(Buffer.alloc(32, 7), { bytes: (n) => randomBytes(n) })
  Object.assign(it.world, locks)
  for (const row of [
    'action.create',
    'action.rotate_secret',
    'webhook.create',
    'webhook.rotate_secret',
    'organization_action.create',
    'organization_action.rotate_secret',
  ] as const) {
    const make = async () => {
      const made = await prepared(it, row, PRJ, {}, 'seed')
      if (isRefusal(made) || !made.answer) throw new Error(`${row} makes no secret`)
      return { sealed: made.input?.['sealed'], answer: made.answer }
    }
    const [first, second] = [await make(), await make()]
    const secret = await first.answer({ secret_version: 2, sealed: first.sealed })
    t.match(secret, { secret_version: 2, signing_secret: /^.{43}=$/ })
    t.notOk('sealed' in Object(secret), 'the sealed secret is not in the answer')
    t.same(
      await second.answer({ secret_version: 2, sealed: first.sealed }),
      secret,
      'the reply that is remembered decides',
    )
    t.notMatch(
      await second.answer({ secret_version: 3, sealed: second.sealed }),
      { signing_secret: (secret as { signing_secret: string }).signing_secret },
      'another rotation yields another secret',
    )
  }
})
t.test('a workflow gets its handle from the organization', async (t) => {
  const it = edge()
  const other = it.change(ORG, 'project.create', { name: 'Other' })
  const create = async (project: string, body: object) => {
    const made = await prepared(it, 'workflow.create', project, body)
    return isRefusal(made)
      ? made
      : it.change(project, 'workflow.create', { spec, ...body, ...made.input })
  }
  const made = await create(PRJ, { name: 'Ship it' })
  t.match(made, { handle: 'ship-it', latest_version: 1 })
  t.match(await create(other.id, { name: 'Ship it' }), {
    refused: 'already_exists',
    details: { handle: 'ship-it' },
  })
  t.match(await create(other.id, { name: 'Else', handle: 'ship-it' }), {
    refused: 'already_exists',
  })
  t.match(await create(PRJ, { name: 'Ship it' }), { refused: 'already_exists' })
  t.match(
    await create(PRJ, { name: '日本' }),
    { handle: /^workflow-[0-9a-f]{8}$/ },
    'a name without Latin letters',
  )
  t.match(await create(PRJ, { name: '日本' }), { refused: 'already_exists' })
  t.match(await create(PRJ, { name: '🎉' }), { handle: /^workflow-[0-9a-f]{8}$/ })
})
t.test(
  'a repeated creation reserves under a new id, so an abandoned reservation does not block it',
  async (t) => {
    const it = edge()
    const first = await prepared(it, 'workflow.create', PRJ, { name: 'W' }, 'seed')
    const second = await prepared(it, 'workflow.create', PRJ, { name: 'W' }, 'seed')
    if (isRefusal(first) || isRefusal(second)) return t.fail('refused')
    t.notSame(first.input, second.input)
  },
)
t.test('a step cannot call actions of the service that are for agents only', async (t) => {
  const it = edge()
  const calls = (action_name: string, id = 'a') => ({ id, kind: 'action', config: { action_name } })
  const steps = [
    calls('crm.sync'),
    {
      id: 'all',
      kind: 'for_each',
      config: { items: '[1]', steps: [calls('service.run.get', 'b')] },
    },
  ]
  const refused = (places: readonly string[]) => ({
    refused: 'bad_request',
    details: {
      fields: places.map((field) => ({
        field,
        message: 'can be called only by agents, not by a step',
      })),
    },
  })
  const nested = 'steps[1].config.steps[0].config.action_name'
  for (const name of ['workflow.create', 'workflow.update', 'run.start'] as const)
    t.match(
      await prepared(it, name, PRJ, { name: 'W', spec: { steps } }),
      refused([`spec.${nested}`]),
      name,
    )
  const loop = { name: 'L', steps, cleanup: [calls('service.memory.recall')] }
  t.match(
    await prepared(it, 'loop.create', PRJ, loop),
    refused([nested, 'cleanup[0].config.action_name']),
  )
  t.match(
    await prepared(it, 'loop.update', PRJ, loop, undefined, {
      id: 'loop_00000000000000000000000000',
    }),
    refused([nested, 'cleanup[0].config.action_name']),
  )
  t.notOk(
    isRefusal(await prepared(it, 'run.start', PRJ, { spec: { steps: [calls('service.mine')] } })),
  )
})
t.test('without addresses for agents, an unknown agent is still not found', async (t) => {
  const it = edge()
  const agent = it.change(PRJ, 'agent.create', { name: 'Bot' })
  const inbox = (id: string) => prepared(it, 'agent.inbox', PRJ, {}, undefined, { id })
  t.match(
    [await inbox(agent.id), await inbox('agt_none')],
    [{ refused: 'inbox_unavailable' }, { refused: 'not_found' }],
  )
})
