/** The storage quota of the organization, command by command. */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import { given, type Scene, START } from '../../support/given.ts'

const organization = (artifact_quota = 100) =>
  given(defineActor(organizationActor({ brand: 'Service', artifact_quota })))
const SOON = START + 1000
const LATE = SOON + 1
const reserve = (artifact: string, bytes: number, expires_at = SOON) => ({
  artifact,
  bytes,
  expires_at,
})
const figures = (scene: Scene<never>) => {
  const { used_bytes, artifact_count, pending_count } = scene.ask('artifact_quota') as Record<
    string,
    number
  >
  return [used_bytes, artifact_count, pending_count]
}
const pending = organization().when('quota.reserve', reserve('a', 60))
const used = pending.when('quota.settle', { artifact: 'a', bytes: 50 })
const refund = { artifact: 'a', bytes: 50, until: START + 500 }

t.test('a reservation counts against the limit', async (t) => {
  t.same(figures(pending), [0, 0, 1])
  t.match(pending.when('quota.reserve', reserve('b', 41)).refused, {
    refused: 'artifact_quota_exceeded',
    details: { used_bytes: 60, limit_bytes: 100, requested_bytes: 41 },
  })
  t.same(figures(pending.when('quota.reserve', reserve('b', 40))), [0, 0, 2])
})
t.test('a repeat replaces the reserved bytes', async (t) => {
  const more = pending.when('quota.reserve', reserve('a', 100))
  t.same(figures(more), [0, 0, 1])
  t.equal(more.when('quota.reserve', reserve('b', 1)).refused?.refused, 'artifact_quota_exceeded')
  t.equal(
    pending.when('quota.reserve', reserve('a', 101)).refused?.refused,
    'artifact_quota_exceeded',
  )
})
t.test('a reservation after the deadline or after the end is refused', async (t) => {
  const late = organization().when('quota.reserve', reserve('a', 1), { at: LATE })
  t.equal(late.refused?.refused, 'artifact_conflict')
  for (const ended of [
    used,
    pending.when('quota.release', { artifact: 'a', until: SOON }),
    organization().when('quota.release', { artifact: 'a', until: SOON }),
  ])
    t.equal(ended.when('quota.reserve', reserve('a', 1)).refused?.refused, 'artifact_conflict')
})
t.test('settled bytes are used bytes, once', async (t) => {
  t.same(figures(used), [50, 1, 0])
  t.same(figures(used.when('quota.settle', { artifact: 'a', bytes: 50 })), [50, 1, 0])
  t.same(organization().when('quota.settle', { artifact: 'a', bytes: 50 }).events, [])
})
t.test('a release drops the reservation', async (t) => {
  const released = pending.when('quota.release', { artifact: 'a', until: SOON })
  t.same(figures(released), [0, 0, 0])
  t.same(released.when('quota.release', { artifact: 'a', until: SOON }).events, [])
  t.same(released.when('quota.settle', { artifact: 'a', bytes: 60 }).events, [])
  const settled = used.when('quota.release', { artifact: 'a', until: SOON })
  t.same(figures(settled), [50, 1, 0])
})
t.test('a refund counts once, whichever copy comes first', async (t) => {
  const direct = used.when('quota.refund', { ...refund, direct: true })
  t.same(figures(direct), [0, 0, 0])
  t.same(direct.when('quota.refund', { ...refund, direct: true }).events, [])
  const both = direct.when('quota.refund', refund)
  t.same(figures(both), [0, 0, 0])
  t.same(figures(both.when('quota.refund', { ...refund, direct: true })), [0, 0, 0])
  const other = used.when('quota.refund', refund)
  t.same(figures(other), [0, 0, 0])
  t.same(other.when('quota.refund', { ...refund, direct: true }).events, [])
})
t.test('the second copy is recognized however late it comes', async (t) => {
  const direct = used.when('quota.refund', { ...refund, direct: true })
  const busy = direct.when('quota.reserve', reserve('b', 1, LATE * 2), { at: LATE })
  t.same(figures(busy.when('quota.refund', refund, { at: LATE })), [0, 0, 1])
  const late = used
    .when('quota.refund', refund)
    .when('quota.refund', { ...refund, direct: true }, { at: LATE })
  t.same(late.events, [], 'a direct copy after its time is ignored')
})
t.test('a refund that overtakes the settlement leaves nothing', async (t) => {
  const overtaken = pending
    .when('quota.refund', { ...refund, direct: true })
    .when('quota.settle', { artifact: 'a', bytes: 50 })
    .when('quota.refund', refund)
  t.same(figures(overtaken), [0, 0, 0])
})
t.test('markers are forgotten once they are not needed', async (t) => {
  const ended = used
    .when('quota.refund', refund)
    .when('quota.reserve', reserve('b', 1, LATE * 2), { at: LATE })
  const { artifacts } = ended.state as { artifacts: Record<string, object> }
  t.same([artifacts['over'], artifacts['refunded'], artifacts['awaited']], [{}, {}, {}])
})
t.test('without a limit, everything fits', async (t) => {
  const free = organization(0)
  t.match(free.ask('artifact_quota'), { limit_bytes: 9_007_199_254_740_991 })
  t.equal(free.when('quota.reserve', reserve('a', 10 ** 15)).refused, undefined)
})
