/** The lifecycle of an organization action's signing secrets. */
import t from 'tap'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import type {
  OrganizationAction,
  OrganizationActionWithSecrets,
} from '../../../protocol/actions/organization-rows.ts'
import { given, type Scene, START } from '../../support/given.ts'

const actor = organizationActor({ brand: 'Acme' }) as never
const DAY_MS = 86_400_000
const first = () =>
  given(actor).when('organization_action.create', {
    name: 'crm.sync',
    endpoint_url: 'https://example.org/a',
    sealed: 's1',
  })
const statuses = (scene: Scene<never>, name = 'crm.sync') =>
  (
    scene.ask('action', { name }) as OrganizationActionWithSecrets | undefined
  )?.action.secret_versions.map(({ version, status }) => `${version} ${status}`)
const secrets = (scene: Scene<never>) =>
  Object.entries(
    (scene.ask('action', { name: 'crm.sync' }) as OrganizationActionWithSecrets).secrets,
  ).map(([version, { sealed }]) => `${version} ${sealed}`)
const id = 'act_1'
const rotate = (scene: Scene<never>, sealed: string, at = START) =>
  scene.when('organization_action.rotate_secret', { action_id: id, sealed }, { at })
const version = (n: number, more: object = {}) => ({ action_id: id, version: String(n), ...more })

t.test('a new action has an active secret and reports where receivers find it', async (t) => {
  const made = first()
  t.match(made.reply, {
    id,
    enabled: true,
    invocation_format: 'signed_context_v1',
    secret_ref: 'acme/org-action/act_1',
    active_signing_version: 1,
    secret_versions: [{ version: 1, status: 'active', activated_at: '2026-01-01T00:00:00.000Z' }],
  })
  t.notOk(JSON.stringify(made.reply).includes('s1'), 'the sealed secret is not in the answer')
  t.match(made.ask('directory', { id: '' }), { actions: { 'crm.sync': { kind: 'http' } } })
  t.match(
    made.when('organization_action.create', {
      name: 'crm.sync',
      endpoint_url: 'https://example.org/b',
      sealed: 's',
    }).refused,
    { refused: 'already_exists' },
  )
  t.match(
    made.when('organization_action.create', {
      name: 'acme.sync',
      endpoint_url: 'https://example.org/b',
      sealed: 's',
    }).refused,
    { refused: 'bad_request' },
  )
})

t.test(
  'a rotated secret signs nothing before its activation; its predecessor retires after the overlap',
  async (t) => {
    const rotated = rotate(first(), 's2')
    t.strictSame(statuses(rotated), ['1 active', '2 pending'])
    t.equal((rotated.reply as OrganizationAction).active_signing_version, 1)
    const active = rotated.when(
      'organization_action.activate_secret',
      version(2, { overlap_seconds: 60 }),
      { at: START + 1000 },
    )
    t.strictSame(statuses(active), ['1 retiring', '2 active'])
    t.match(active.reply, {
      active_signing_version: 2,
      secret_versions: [
        { accept_until: '2026-01-01T00:01:01.000Z' },
        { activated_at: '2026-01-01T00:00:01.000Z' },
      ],
    })
    t.strictSame(secrets(active), ['1 s1', '2 s2'])
    t.equal(active.deadline(), START + 61_000)
    t.strictSame(active.when('wake', {}, { at: START + 60_999 }).events, [])
    const later = active.when('wake', {}, { at: START + 61_005 })
    t.strictSame(statuses(later), ['1 retired', '2 active'])
    t.match(later.ask('action', { name: 'crm.sync' }), {
      action: { secret_versions: [{ retired_at: '2026-01-01T00:01:01.000Z' }, {}] },
    })
    t.strictSame(secrets(later), ['2 s2'], 'a retired secret is not stored')
    t.equal(later.deadline(), undefined)
  },
)

t.test('the overlap defaults to one day and may be zero', async (t) => {
  const day = rotate(first(), 's2').when('organization_action.activate_secret', version(2))
  t.equal(day.deadline(), START + DAY_MS)
  const none = rotate(first(), 's2').when(
    'organization_action.activate_secret',
    version(2, { overlap_seconds: 0 }),
  )
  t.strictSame(statuses(none), ['1 retired', '2 active'])
  t.strictSame(secrets(none), ['2 s2'])
})

t.test(
  'a second rotation replaces a pending secret; only a pending one can be activated',
  async (t) => {
    const twice = rotate(rotate(first(), 's2'), 's3')
    t.strictSame(statuses(twice), ['1 active', '2 revoked', '3 pending'])
    t.strictSame(secrets(twice), ['1 s1', '3 s3'])
    for (const n of [1, 2])
      t.match(twice.when('organization_action.activate_secret', version(n)).refused, {
        refused: 'conflict',
      })
    for (const n of ['4', '0', 'x', '1.0', '__proto__'])
      t.match(
        twice.when('organization_action.activate_secret', { action_id: id, version: n }).refused,
        { refused: 'not_found' },
      )
  },
)

t.test('revocation is immediate; for the active secret the action must be disabled', async (t) => {
  const rotated = rotate(first(), 's2')
  t.match(rotated.when('organization_action.revoke_secret', version(1)).refused, {
    refused: 'conflict',
  })
  t.strictSame(statuses(rotated.when('organization_action.revoke_secret', version(2))), [
    '1 active',
    '2 revoked',
  ])
  const off = rotated
    .when('organization_action.update', { action_id: id, enabled: false })
    .when('organization_action.revoke_secret', version(1))
  t.strictSame(statuses(off), ['1 revoked', '2 pending'])
  t.notOk('active_signing_version' in (off.reply as object))
  t.strictSame(
    off.when('organization_action.revoke_secret', version(1)).events,
    [],
    'repeating it changes nothing',
  )
  const on = off.when('organization_action.activate_secret', version(2))
  t.match(on.reply, { active_signing_version: 2 })
  const retiring = rotated
    .when('organization_action.activate_secret', version(2))
    .when('organization_action.revoke_secret', version(1))
  t.strictSame(statuses(retiring), ['1 revoked', '2 active'])
  t.equal(retiring.deadline(), undefined)
})

t.test('the name may change; the number of old secret versions is limited', async (t) => {
  const renamed = first().when('organization_action.update', { action_id: id, name: 'crm.push' })
  t.strictSame([statuses(renamed), statuses(renamed, 'crm.push')], [undefined, ['1 active']])
  t.equal((renamed.reply as OrganizationAction).secret_ref, 'acme/org-action/act_1')
  let scene: Scene<never> = first()
  for (let n = 2; n < 70; n++) scene = rotate(scene, `s${n}`)
  t.equal(statuses(scene)?.length, 50)
  t.equal(statuses(scene)?.at(0), '1 active', 'but none that counts')
})
