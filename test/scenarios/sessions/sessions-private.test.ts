/**
 * Private sessions are invisible to principals that may not read them, in every operation, list and
 * stream.
 */
import t from 'tap'
import { api, type RowName } from '../../../protocol/api.ts'
import { type Row, routeOf } from '../../../protocol/contract.ts'
import { service } from '../../support/service.ts'
import { type Found, idsOf, instant, listOf, until } from '../support/given.ts'
import { editor, type Person, person } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())
const [ann, bob, out, admin] = await Promise.all([
  editor(s, 'ann'),
  editor(s, 'bob'),
  editor(s, 'out'),
  person(s, 'admin', 'role_admin'),
])
const WORD = 'Xylophone'
const agent = await s.ok('agent.create', {
  name: 'confidant',
  system_prompt: `script:
  - when: {after: '*'}
    say: "${WORD} done"
  - call: {ask: {title: "${WORD} asked", target_user_ids: ["${bob.id}"]}}
`,
})
const content = [{ type: 'text', text: `${WORD} said` }]
const bodies: Readonly<Record<string, object>> = {
  'session.start_turn': { content },
  'session.append': { messages: [{ role: 'user', content }] },
  'session.nudge': { content: 'x' },
  'session.attach': { name: 'x.txt', file: 'eA==' },
  'session.update': { title: 'x' },
  'interaction.respond': { value: 'x' },
  'interaction.review': { action: 'accept' },
  'interaction.link': { target_user_ids: [bob.id] },
}
/** Starts a conversation that waits for an answer from the principal bob. */
async function talk(session_key: string, visibility?: string): Promise<Record<string, string>> {
  const ack = (await ann.ok('agent.invoke', {
    agent_ref: { id: agent['id'] },
    session: { session_key, ...(visibility !== undefined && { visibility }) },
    input: { content },
  })) as unknown as Record<'session' | 'turn', { id: string; visibility: string }>
  const session_id = ack.session.id
  const [asked] = await until(
    async () => listOf(await ann.ok('interaction.list', { session_id })),
    (all) => all.length > 0,
  )
  return {
    session_id,
    visibility: ack.session.visibility,
    turn_id: ack.turn.id,
    id: String(asked?.['id']),
    artifact_id: 'art_1',
    nudge_id: 'nudge_1',
  }
}
const closed = await talk('closed', 'private')
const open = await talk('open')
const rows = (Object.entries(api) as [RowName, Row][]).filter(
  ([name, { route }]) =>
    route.includes(':session_id') ||
    route.includes(':turn_id') ||
    (name.startsWith('interaction.') && route.includes(':id')),
)
const call = (who: Person, name: RowName, at: Record<string, string>) =>
  who.call(
    name,
    Object.assign(
      Object.fromEntries(
        routeOf(api[name])
          .slots.filter((slot) => slot in at)
          .map((slot) => [slot, at[slot]]),
      ),
      bodies[name],
    ),
  )
const isRead = (name: RowName) =>
  (api[name] as Row).verb === 'query' &&
  /^(session\.(get|messages|turns?|transcript)|interaction\.get)$/.test(name)

t.test('the default visibility is project', async (t) => {
  t.equal(open['visibility'], 'project')
  t.equal(closed['visibility'], 'private')
  t.equal((await call(out, 'session.get', open)).status, 200)
})

t.test('a private session does not exist for other principals, in any operation', async (t) => {
  t.ok(rows.length > 25)
  for (const [name, { shape }] of rows) {
    const { status, body } = await call(out, name, closed)
    // A missing permission is reported before the session is looked up.
    const expected = shape.permission === 'project.admin' ? 403 : 404
    t.equal(status, expected, `${name} ${JSON.stringify(body)}`)
    t.notMatch(JSON.stringify(body), WORD, name)
  }
  const unknown = { ...closed, session_id: 'ses_01ARZ3NDEKTSV4RRFFQ69G5FAV' }
  t.strictSame(
    (await call(out, 'session.get', closed)).body,
    (await call(out, 'session.get', unknown)).body,
    'the response is the same as for an unknown session',
  )
  for (const who of [ann, admin])
    for (const [name] of rows)
      if (isRead(name)) t.equal((await call(who, name, closed)).status, 200, name)
  t.equal(
    (await call(bob, 'interaction.get', closed)).status,
    200,
    'bob is a target of the interaction',
  )
  t.equal((await call(bob, 'session.get', closed)).status, 404, 'bob has not posted in the session')
})

t.test('lists, session keys and source events do not reveal a private session', async (t) => {
  const listed = async (who: Person, name: RowName, input = {}) =>
    idsOf(await who.ok(name, { limit: 100, ...input }))
  const agent_id = agent['id']
  t.strictSame(await listed(out, 'session.list', { agent_id }), [open['session_id']])
  t.strictSame(await listed(out, 'session.list', { agent_id, session_key: 'closed' }), [])
  t.strictSame(await listed(out, 'interaction.list'), [open['id']])
  t.strictSame(
    await listed(out, 'interaction.list', { session_id: closed['session_id'] }),
    [],
    'the session filter does not reveal it',
  )
  for (const who of [ann, admin, bob])
    t.strictSame(
      (await listed(who, 'interaction.list')).sort(),
      [open['id'], closed['id']].sort(),
      'readers of the session, and targets',
    )
  for (const who of [ann, admin])
    t.equal((await listed(who, 'session.list', { agent_id })).length, 2)
  for (const mode of ['continue', 'continue_or_create'])
    await out.refused('session.create', { agent_id, session_key: 'closed', mode }, 404, 'not_found')
  await out.refused(
    'agent.invoke',
    { agent_ref: { id: agent_id }, session: { session_key: 'closed' }, input: { content } },
    404,
    'not_found',
  )
  const events = (who: Person) => who.ok('event.list', { limit: 200 }).then(listOf)
  await until(
    () => events(out),
    (all) => all.some(({ source_id }) => source_id === open['id']),
  )
  const [shown] = await Promise.all([events(out), events(ann), events(admin)])
  t.ok(shown.some(({ source_id }) => source_id === open['session_id']))
  t.notMatch(JSON.stringify(shown), String(closed['session_id']))
  t.notMatch(JSON.stringify(shown), String(closed['id']))
  for (const who of [ann, admin]) {
    const all = await events(who)
    const said = all.find(({ source_id }) => source_id === closed['session_id'])
    t.ok(said && all.some(({ source_id }) => source_id === closed['id']))
    await who.ok('event.get', { id: said?.['id'] })
    await out.refused('event.get', { id: said?.['id'] }, 404, 'not_found')
  }
})

t.test('events reach only triggers and webhooks whose last editor may read them', async (t) => {
  const { id: session_id } = await ann.ok('session.create', {
    agent_id: agent['id'],
    session_key: 'heard',
    visibility: 'private',
  })
  const former = await person(s, 'former', 'role_admin')
  const owner: Pick<Person, 'ok'> = { ok: (row, input) => s.ok(row, input) }
  const config = { event_type: 'session.message.created', source_id: session_id }
  const loopOf = (who: Pick<Person, 'ok'>, name: string) =>
    who.ok('loop.create', { name, triggers: [{ kind: 'event', config }], ...instant() })
  const hookOf = (who: Pick<Person, 'ok'>, name: string) =>
    who.ok('webhook.create', { name, url: 'https://receiver.invalid/', events: ['session.*'] })
  const firing = await Promise.all([loopOf(ann, 'a'), loopOf(admin, 'b'), loopOf(owner, 'c')])
  const silent = await Promise.all([loopOf(out, 'd'), loopOf(former, 'e'), loopOf(ann, 'f')])
  await out.ok('loop.update', { id: silent[2]['id'], description: 'edited by another principal' })
  const hooks = await Promise.all([hookOf(admin, 'a'), hookOf(owner, 'b')])
  const stale = await hookOf(former, 'c')
  await s.ok('principal.update', { id: former.id, role_ids: ['role_editor'] })

  const deliveries = async (who: Person, { id }: Found) =>
    listOf(await who.ok('webhook.deliveries', { webhook_id: id }))
  const runs = async ({ id }: Found) => listOf(await admin.ok('run.list', { loop_id: id }))
  await ann.ok('session.append', { session_id, messages: [{ role: 'user', content }] })
  for (const loop of firing)
    await until(
      () => runs(loop),
      (all) => all.length === 1,
    )
  for (const hook of hooks)
    await until(
      () => deliveries(ann, hook),
      ([one]) => /URL could not/.test(String(one?.['last_error'])),
    )
  const [dropped] = await until(
    () => deliveries(ann, stale),
    ([one]) => one?.['status'] === 'failed',
  )
  t.match(dropped, { attempts: 0, last_error: /may not read the session/ })
  for (const hook of [...hooks, stale])
    t.strictSame(await deliveries(out, hook), [], 'only readers of the session see its deliveries')
  for (const loop of silent) t.strictSame(await runs(loop), [])
  await s.ok('principal.update', { id: former.id, role_ids: ['role_admin'] })
  await ann.ok('session.append', { session_id, messages: [{ role: 'user', content }] })
  await until(
    () => runs(silent[1]),
    (all) => all.length === 1,
  )
  for (const loop of [silent[0], silent[2]]) t.strictSame(await runs(loop), [])
})

t.test('a principal that posted in a private session may read it', async (t) => {
  const { session_id } = closed
  await admin.ok('session.append', { session_id, messages: [{ role: 'user', content }] })
  t.match(await bob.ok('interaction.respond', { id: closed['id'], value: 'yes' }), {
    status: 'completed',
  })
  await s.ok('principal.update', { id: admin.id, role_ids: ['role_editor'] })
  await admin.ok('session.get', { session_id })
  await until(
    () => ann.ok('session.turn', { session_id, turn_id: closed['turn_id'] }),
    ({ status }) => status === 'completed',
  )
  await call(out, 'session.get', closed).then(({ status }) => t.equal(status, 404))
})

t.test('deleting a session by PATCH requires the permission of DELETE', async (t) => {
  const operator = await person(s, 'operator')
  const { id: session_id } = await operator.ok('session.create', {
    agent_id: agent['id'],
    session_key: 'mine',
  })
  await operator.refused('session.delete', { session_id }, 403, 'permission_denied')
  await operator.refused(
    'session.update',
    { session_id, status: 'deleted' },
    403,
    'permission_denied',
  )
  await operator.ok('session.update', { session_id, status: 'archived' })
  t.match(await ann.ok('session.update', { session_id, status: 'deleted' }), { status: 'deleted' })
})
