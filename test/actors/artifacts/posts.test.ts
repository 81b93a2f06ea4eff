/** The messages of channels that share a private artifact. */
import t from 'tap'
import { MAX_ARTIFACT_POSTS } from '../../../protocol/artifacts/commands.ts'
import { fresh, lease, owner, ready, reserved } from './story.ts'

const post = (message_id: string, principal_id = 'user_1') => ({
  principal_id,
  channel_id: 'chan_1',
  message_id,
})

t.test('a message of the owner shares a private artifact, once', async (t) => {
  const after = ready().when('artifact.post', post('cmsg_1'))
  const stored = { channel_id: 'chan_1', message_id: 'cmsg_1' }
  t.same(after.events, [{ type: 'artifact.posted', post: stored }])
  t.same(after.state.posts, [stored])
  t.equal(after.state.artifact?.visibility, 'private')
  t.same(after.when('artifact.post', post('cmsg_1')).events, [])
})
t.test('a message of another principal shares nothing', async (t) => {
  t.same(ready().when('artifact.post', post('cmsg_1', 'user_2')).events, [])
})
t.test('only a ready, private artifact is shared', async (t) => {
  for (const scene of [
    fresh(),
    reserved(),
    reserved().when('artifact.abandon'),
    ready().when('artifact.delete', { viewer: owner }),
    ready({ lease }),
  ])
    t.same(scene.when('artifact.post', post('cmsg_1')).events, [])
})
t.test('only the newest messages are stored', async (t) => {
  let scene = ready()
  for (let n = 0; n <= MAX_ARTIFACT_POSTS; n++)
    scene = scene.when('artifact.post', post(`cmsg_${n}`))
  t.equal(scene.state.posts?.length, MAX_ARTIFACT_POSTS)
  t.equal(scene.state.posts?.[0]?.message_id, 'cmsg_1')
})
