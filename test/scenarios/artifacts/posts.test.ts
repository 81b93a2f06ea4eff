/** Private artifacts that their owners post in channels, over HTTP. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, until } from '../support/given.ts'
import { as, editor, type Person, person } from '../support/people.ts'
import { artifactClient } from './client.ts'

t.setTimeout(60_000)
const s = await service()
t.teardown(() => s.stop())
const { put, content } = artifactClient(s.url, s.key)

const upload = async (who: Person): Promise<Found> =>
  (await put('plan.txt', Buffer.from('plan'), as(who))).body as Found
const naming = ({ id, size_bytes, sha256 }: Found) => ({
  artifacts: [{ type: 'artifact', id, mime: 'text/plain', size: size_bytes, sha256 }],
})
const statusFor = async (who: Person, { id }: Found) => (await content(id, as(who))).status
const opens = (who: Person, file: Found) =>
  until(
    () => statusFor(who, file),
    (status) => status === 200,
  )

t.test('readers of a message may read the files that its sender owns', async (t) => {
  const [ann, bob, eve] = await Promise.all([
    editor(s, 'ann'),
    editor(s, 'bob'),
    person(s, 'eve', 'role_admin'),
  ])
  const channelOf = (name: string, isPrivate: boolean) =>
    ann.ok('channel.create', { name, private: isPrivate, member_ids: [bob.id] })
  const closed = await channelOf('closed', true)
  const file = await upload(ann)
  t.equal(await statusFor(bob, file), 404, 'the file is private')

  // A message of another principal shares nothing, even in a channel that everyone reads.
  const open = await channelOf('open', false)
  const stolen = { id: open['id'], content: 'mine', metadata: naming(file) }
  await bob.ok('channel.send', stolen)

  const message = await ann.ok('channel.send', {
    id: closed['id'],
    content: 'the plan',
    metadata: naming(file),
  })
  await opens(bob, file)
  t.match(await bob.ok('artifact.get', { artifact_id: file['id'] }), { visibility: 'private' })
  await bob.ok('artifact.signed_url', { artifact_id: file['id'] })
  await bob.refused('artifact.delete', { artifact_id: file['id'] }, 404, 'not_found')
  t.equal(await statusFor(eve, file), 404, 'an administrator who is not a member')

  await bob.ok('channel.remove_member', { id: closed['id'], user_id: bob.id })
  await until(
    () => statusFor(bob, file),
    (status) => status === 404,
  )
  await ann.ok('channel.add_member', { id: closed['id'], user_id: bob.id })
  await opens(bob, file)

  // The message no longer names the file.
  const one = { id: closed['id'], message_id: message['id'] }
  await ann.ok('channel.edit', { ...one, metadata: {} })
  t.equal(await statusFor(bob, file), 404)
  await ann.ok('channel.edit', { ...one, metadata: naming(file) })
  await opens(bob, file)

  await ann.ok('channel.delete', { id: closed['id'] })
  await until(
    () => statusFor(bob, file),
    (status) => status === 404,
  )
  t.equal(await statusFor(ann, file), 200)
})

t.test('a message of another project shares nothing', async (t) => {
  const { id: project } = await s.ok('project.create', { name: 'Other' })
  const [ann, out] = await Promise.all([
    editor(s, 'owner'),
    person(s, 'out', 'role_editor', String(project)),
  ])
  const file = await upload(ann)
  const channel = await out.ok('channel.create', { name: 'theirs' })
  await out.ok('channel.send', { id: channel['id'], content: 'x', metadata: naming(file) })
  const own = await ann.ok('channel.create', { name: 'ours' })
  await ann.ok('channel.send', { id: own['id'], content: 'x', metadata: naming(file) })
  await opens(await editor(s, 'reader'), file)
  for (const where of [String(project), 'default']) {
    const path = `/v1/projects/${where}/artifacts/${file['id']}/content`
    const answer = await fetch(s.url + path, { headers: { authorization: `Bearer ${out.key}` } })
    t.ok(answer.status === 403 || answer.status === 404, `${where}: ${answer.status}`)
  }
})
