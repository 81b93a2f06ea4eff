/** The source events of private artifacts reach only their owners. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, instant, listOf, until } from '../support/given.ts'
import { as, editor, type Person, person } from '../support/people.ts'
import { artifactClient } from './client.ts'

t.setTimeout(60_000)
const s = await service()
t.teardown(() => s.stop())
const { put } = artifactClient(s.url, s.key)

t.test('the events of a private artifact reach only their owner', async (t) => {
  const [ann, out, viewer] = await Promise.all([
    person(s, 'ann', 'role_admin'),
    editor(s, 'out'),
    person(s, 'viewer', 'role_viewer'),
  ])
  const admin: Pick<Person, 'ok'> = { ok: (row, input) => s.ok(row, input) }
  const triggers = [{ kind: 'event', config: { event_type: 'artifact.created' } }]
  const loopOf = (who: Pick<Person, 'ok'>, name: string) =>
    who.ok('loop.create', { name, triggers, ...instant() })
  const own = await loopOf(ann, 'own')
  const others = await Promise.all([loopOf(out, 'others'), loopOf(admin, 'admin')])
  const hookOf = (who: Pick<Person, 'ok'>, name: string) =>
    who.ok('webhook.create', { name, url: 'https://receiver.invalid/', events: ['artifact.*'] })
  const [ownHook, otherHook] = await Promise.all([hookOf(ann, 'own'), hookOf(admin, 'other')])

  const { body } = await put('plan.txt', Buffer.from('x'), as(ann))
  t.equal(body['visibility'], 'private')
  const runs = async ({ id }: Found) => listOf(await s.ok('run.list', { loop_id: id }))
  const [run] = await until(
    () => runs(own),
    (all) => all.length === 1,
  )
  t.match(await viewer.ok('run.get', { id: run?.['id'] }), { event: { name: 'plan.txt' } })
  const events = (who: Pick<Person, 'ok'>) =>
    who.ok('event.list', { event_type: 'artifact.created' }).then(listOf)
  const [event] = await events(ann)
  t.match(event, { source_id: body['id'] })
  for (const who of [viewer, out]) {
    t.strictSame(await events(who), [])
    await who.refused('event.get', { id: event?.['id'] }, 404, 'not_found')
  }
  t.strictSame(await events(admin), [])

  const deliveries = async (who: Pick<Person, 'ok'>, { id }: Found) =>
    listOf(await who.ok('webhook.deliveries', { webhook_id: id }))
  await until(
    () => deliveries(ann, ownHook),
    ([one]) => /URL could not/.test(String(one?.['last_error'])),
  )
  const [dropped] = await until(
    () => deliveries(ann, otherHook),
    ([one]) => one?.['status'] === 'failed',
  )
  t.match(dropped, { last_error: /may not read the artifact/ })
  t.strictSame(await deliveries(admin, otherHook), [])
  await s.refused(
    'webhook.resend',
    { webhook_id: otherHook['id'], delivery_id: dropped?.['id'] },
    404,
    'not_found',
  )
  for (const loop of others) t.strictSame(await runs(loop), [])
})
