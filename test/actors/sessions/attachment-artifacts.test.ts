/**
 * Files of a session as artifacts: a change to a file or to its artifact is applied to both in one
 * commit. Files that an earlier release stored have no artifact.
 */
import t from 'tap'
import { defineActor, fold } from '../../../actors/actor.ts'
import { artifactActor } from '../../../actors/artifacts/artifact.ts'
import { sessionActor } from '../../../actors/sessions/session.ts'
import type { SessionState } from '../../../actors/sessions/state.ts'
import type { Event } from '../../../protocol/entry.ts'
import type { Attached } from '../../../protocol/sessions/attachments.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import { given, START } from '../../support/given.ts'
import { begun, type Story, say } from './story.ts'

type Open = Record<string, unknown>
const file = {
  name: 'plan.png',
  mime_type: 'image/png',
  size_bytes: 10,
  sha256: 'ab',
  as: 'image',
}
const counted = { file, hash: 'h', organization: 'org_1' }
const admin = { id: 'user_9', admin: true }
const owner = { id: 'user_1', admin: false }
const other = { id: 'user_2', admin: false }
const quota = (name: string, input: Open) => ({
  tell: { to: { kind: 'organization', id: 'org_1', project: 'org_1' }, name, input },
})

function resting(): Story {
  const s = begun()
  s.answers(say('x'))
  return s
}
const replyOf = <T>(s: Story): T => s.last?.reply as T
function announced(s: Story, input: Open = counted): string {
  s.do('attachment.reserve', input)
  return replyOf<{ artifact_id: string }>(s).artifact_id
}
function attached(s: Story, input: Open = counted): string {
  const artifact_id = announced(s, input)
  s.do('session.attach', { artifact_id })
  return artifact_id
}
const stateOf = (s: Story, id: string): unknown => s.artifacts.get(id)?.state?.state
const fileOf = (s: Story, id: string) => s.session.state.attachments?.[id]

t.test('the upload of a file announces its artifact', async (t) => {
  const s = resting()
  const id = announced(s)
  const until = s.at + limits.file.awaited
  t.same(s.last?.reply, { artifact_id: id, expires_at: until })
  t.match(s.artifacts.get(id)?.state, {
    state: 'pending',
    organization: 'org_1',
    blob: `file/prj_1/${id}`,
    session_id: 'ses_1',
    attachment: true,
    until,
    artifact: { id, visibility: 'shared', size_bytes: 10, owned_by: 'user_1' },
  })
  t.equal(s.artifacts.get(id)?.deadline(), undefined, 'the session gives it up')
  const keyed = { ...counted, key: 'user_1 k' }
  const half = announced(s, keyed)
  s.pass(1000)
  t.equal(announced(s, keyed), half)
  t.match(s.last?.reply, { expires_at: until }, 'a repeat has the same deadline')
})

t.test('a stored file is the same record as its artifact', async (t) => {
  const s = resting()
  const id = announced(s)
  s.pass(5000)
  s.do('session.attach', { artifact_id: id })
  const { artifact } = replyOf<Attached>(s)
  t.equal(artifact.created_at, '2026-01-01T00:00:05.000Z')
  const kept = s.artifacts.get(id)?.state
  t.equal(kept?.state, 'ready')
  t.same(kept && 'artifact' in kept && kept.artifact, { ...artifact, owned_by: 'user_1' })
  t.match(s.session.ask('attachments'), { items: [artifact] })
  const [settle, publish] = s.artifactEffects
  t.same(settle, quota('quota.settle', { artifact: id, bytes: 10 }))
  t.match(publish, {
    tell: {
      name: 'source.publish',
      input: {
        event_type: 'artifact.created',
        meta: { kind: 'attachment' },
        private_session: 'ses_1',
      },
    },
  })
})

t.test('a file that is deleted in the session deletes its artifact', async (t) => {
  const s = resting()
  const id = attached(s)
  s.artifactEffects.splice(0)
  s.do('session.detach', { artifact_id: id })
  t.same(s.last?.effects, [], 'the artifact erases the bytes')
  t.equal(stateOf(s, id), 'deleted')
  t.match(s.artifactEffects, [
    { erase: [`file/prj_1/${id}`, `file/prj_1/${id}.md`] },
    quota('quota.refund', { artifact: id, bytes: 10 }),
  ])
})

t.test('a file whose artifact is deleted is erased in the session', async (t) => {
  const s = resting()
  const id = attached(s)
  t.equal(s.artifact(id, 'artifact.delete', { viewer: other }), 'permission_denied')
  t.equal(fileOf(s, id)?.state, 'stored')
  t.equal(s.artifact(id, 'artifact.delete', { viewer: owner }), undefined)
  t.equal(fileOf(s, id)?.state, 'erased')
  t.match(s.session.ask('attachments'), { items: [] })
  t.equal(s.do('session.detach', { artifact_id: id }), undefined, 'deleting it again is accepted')
  t.same(s.last?.events, [])
})

t.test('the artifact of an upload in progress cannot be deleted', async (t) => {
  const s = resting()
  const id = announced(s)
  t.equal(s.artifact(id, 'artifact.delete', { viewer: owner }), 'conflict')
  t.equal(s.artifact(id, 'artifact.delete', { viewer: admin }), 'conflict')
  t.equal(s.artifact(id, 'artifact.delete', { viewer: other }), 'not_found')
  t.equal(stateOf(s, id), 'pending')
})

t.test('only the session completes, renews or gives up the artifact', async (t) => {
  const s = resting()
  const id = announced(s)
  const { name, mime_type, size_bytes, sha256 } = file
  const stored = { name, mime_type, size_bytes, sha256 }
  t.equal(s.artifact(id, 'artifact.complete', stored), 'artifact_conflict')
  t.equal(s.artifact(id, 'artifact.renew', {}), 'artifact_conflict')
  s.artifact(id, 'artifact.abandon', {})
  s.pass(limits.file.awaited)
  s.artifact(id, 'wake', {})
  t.equal(stateOf(s, id), 'pending')
  const plain = given(defineActor(artifactActor({ brand: 'Service' })))
    .when('artifact.reserve', { organization: 'org_1', blob: 'b', owner: 'user_1' })
    .when('artifact.complete', { ...stored, attachment: {} })
  t.equal(plain.refused?.refused, 'artifact_conflict', 'an upload of a client has no session')
})

t.test('a failed upload is given up, a complete one is not', async (t) => {
  const s = resting()
  const id = announced(s)
  s.do('attachment.abandon', { artifact_id: id })
  t.same(s.last?.reply, { abandoned: true })
  t.equal(fileOf(s, id), undefined)
  t.equal(stateOf(s, id), 'abandoned')
  t.match(s.artifactEffects.at(-1), quota('quota.release', { artifact: id }))
  s.do('attachment.abandon', { artifact_id: id })
  t.same([s.last?.events, s.last?.reply], [[], { abandoned: true }])
  const whole = attached(s)
  s.do('attachment.abandon', { artifact_id: whole })
  t.same([s.last?.events, s.last?.reply], [[], { abandoned: false }])
  t.equal(stateOf(s, whole), 'ready')
})

t.test('a deadline, and the end of the session, remove the artifacts', async (t) => {
  const s = resting()
  const late = announced(s)
  s.pass(limits.file.awaited)
  s.do('wake', {})
  t.equal(stateOf(s, late), 'abandoned')
  const [whole, half] = [attached(s), announced(s)]
  s.do('session.delete', {})
  t.same(
    [whole, half].map((id) => stateOf(s, id)),
    ['deleted', 'abandoned'],
  )
  t.match(s.artifactEffects.filter((effect) => 'tell' in effect).slice(-2), [
    quota('quota.refund', { artifact: whole }),
    quota('quota.release', { artifact: half }),
  ])
  s.do('attachment.removed', { artifact_id: whole })
  t.same(s.last?.events, [])

  const brief = begun('hi', { session: { retention: { mode: 'bounded', ttl_seconds: 3600 } } })
  brief.answers(say('x'))
  const expired = attached(brief)
  brief.pass(3_600_000)
  brief.do('wake', {})
  t.equal(stateOf(brief, expired), 'deleted')
})

t.test('the deletion of the project leaves the file to the artifact', async (t) => {
  const s = resting()
  const [whole, half] = [attached(s), announced(s)]
  for (const id of [whole, half]) s.artifact(id, 'artifact.remove', {})
  t.same(
    [whole, half].map((id) => stateOf(s, id)),
    ['deleted', 'abandoned'],
  )
  s.do('session.delete', {})
  t.same(
    [whole, half].map((id) => stateOf(s, id)),
    ['deleted', 'abandoned'],
  )
})

t.test('files in journals of earlier versions stay readable, usable and deletable', async (t) => {
  const s = resting()
  const artifact = {
    id: 'art_old',
    visibility: 'shared',
    name: 'old.png',
    mime_type: 'image/png',
    size_bytes: 10,
    sha256: 'ab',
    created_by: 'user_1',
    created_at: '2025-01-01T00:00:00.000Z',
  }
  const until = START + limits.file.awaited
  const old = (id: string) => ({
    type: 'attachment.reserved',
    attachment: { artifact: { ...artifact, id }, as: 'image', state: 'coming', until, hash: 'h' },
  })
  const history: Event[] = [
    ...s.session.history,
    old('art_old'),
    { type: 'attachment.stored', id: 'art_old' } as Event,
    old('art_half'),
    old('art_gone'),
    { type: 'attachment.erased', ids: ['art_gone'] } as Event,
  ]
  const actor = defineActor(sessionActor({ brand: 'Service' }))
  t.ok(fold(actor, history, START))
  s.session = given<SessionState>(actor, ...history)
  t.same(s.session.ask('attachments'), { items: [artifact] })
  t.same(s.session.ask('attachment', { artifact_id: 'art_old' }), artifact)
  const block = { type: 'image', source: { type: 'artifact', artifact_id: 'art_old' } }
  t.equal(s.invoke('look', { input: { content: [say('look'), block] } }), undefined)
  t.equal(s.do('session.attach', { artifact_id: 'art_half' }), undefined)
  t.equal(s.do('session.detach', { artifact_id: 'art_old' }), undefined)
  t.same(s.last?.effects, [{ erase: ['file/prj_1/art_old', 'file/prj_1/art_old.md'] }])
  s.answers(say('x'))
  const id = attached(s)
  s.do('session.delete', {})
  t.same(s.last?.effects, [{ erase: ['file/prj_1/art_half', 'file/prj_1/art_half.md'] }])
  t.equal(stateOf(s, id), 'deleted')
  t.same([...s.artifacts.keys()], [id], 'files of earlier versions have no artifact')
})

t.test('an upload through a gateway of an earlier version is not counted', async (t) => {
  const s = resting()
  const { organization: _, ...input } = counted
  const id = attached(s, input)
  t.equal(fileOf(s, id)?.state, 'stored')
  t.equal(s.artifacts.size, 0)
  s.do('session.detach', { artifact_id: id })
  t.same(s.last?.effects, [{ erase: [`file/prj_1/${id}`, `file/prj_1/${id}.md`] }])
})
