/** The configuration of the definition resolver, and the return origins of OAuth. */
import t from 'tap'
import { organizationActor } from '../../../actors/projects/organization/organization.ts'
import type { OrganizationDirectory } from '../../../protocol/access/directory.ts'
import { given, type Scene, START } from '../../support/given.ts'

const actor = organizationActor({ brand: 'Acme' }) as never
const URL = 'https://resolver.example/definitions'
const client = { source: 'client_resolver', endpoint_url: URL }
const token = (digest: string) => ({ sealed: `sealed ${digest}`, digest })
const put = (scene: Scene<never>, body: object, at = START) =>
  scene.when('resolver.put', body, { at })
const kept = (scene: Scene<never>) =>
  (scene.ask('directory', { id: '' }) as OrganizationDirectory).resolver

const defaults = {
  auth_configured: false,
  timeout_ms: 2000,
  protocol_version: 1,
  revalidate_after_s: 0,
  stale_max_age_s: 0,
  on_unavailable: 'last_known_good',
}

t.test('a replacement has the defaults for everything that it omits', async (t) => {
  const first = put(given(actor), {
    ...client,
    timeout_ms: 500,
    revalidate_after_s: 30,
    stale_max_age_s: 60,
    on_unavailable: 'fail',
  })
  t.match(first.reply, { ...client, timeout_ms: 500, stale_max_age_s: 60, on_unavailable: 'fail' })
  const second = put(first, client, START + 1000)
  t.strictSame(second.reply, { ...client, ...defaults, updated_at: '2026-01-01T00:00:01.000Z' })
  t.strictSame(put(second, { ...client, timeout_ms: -5 }).events, [], 'not positive: the default')
})

t.test('a repeat changes nothing, and neither does an unknown brand', async (t) => {
  const first = put(given(actor), { ...client, sealed_token: token('a') })
  const again = put(first, { ...client, sealed_token: token('a') }, START + 5000)
  t.strictSame(again.events, [])
  t.strictSame(again.reply, first.reply)
  t.match(put(first, { source: 'other_stored' }).refused, { refused: 'bad_request' })
  for (const source of ['stored', 'acme_stored'])
    t.match(put(first, { source }).reply, { source: 'acme_stored' }, source)
})

t.test('an omitted auth keeps the token, and an empty one removes it', async (t) => {
  const first = put(given(actor), { ...client, sealed_token: token('a') })
  t.match(first.reply, { auth_configured: true })
  t.notMatch(JSON.stringify(first.reply), /sealed/)
  const moved = put(first, { ...client, endpoint_url: `${URL}/2` })
  t.match(moved.reply, { auth_configured: true })
  t.match(kept(moved)?.token, token('a'))
  const other = put(moved, { ...client, sealed_token: token('b') })
  t.match(kept(other)?.token, token('b'))
  const cleared = put(other, { ...client, sealed_token: null })
  t.match(cleared.reply, { auth_configured: false })
  t.equal(kept(cleared)?.token, undefined)
  t.strictSame(put(cleared, { ...client, sealed_token: null }).events, [])
})

t.test('the audited changes name the token without its text', async (t) => {
  const first = put(given(actor), { ...client, sealed_token: token('a') })
  t.strictSame(first.events[0]?.['changes'], {
    source: { from: 'stored', to: 'client_resolver' },
    endpoint_url: { to: URL },
    token: { to: 'set' },
  })
  const cleared = put(first, { ...client, sealed_token: null })
  t.strictSame(cleared.events[0]?.['changes'], { token: { to: 'removed' } })
})

t.test('query values of the URL are sealed and kept for the same address', async (t) => {
  const part = { sealed: 'v1.x', digest: 'd1' }
  const masked = `${URL}?key=***`
  const first = put(given(actor), { ...client, endpoint_url: masked, url_parts: [part] })
  t.match(first.reply, { endpoint_url: masked })
  const again = put(first, { ...client, endpoint_url: masked, url_parts: [null] })
  t.strictSame(again.events, [], 'the mask keeps the value')
  const moved = put(first, {
    ...client,
    endpoint_url: 'https://other.example/?key=***',
    url_parts: [null],
  })
  t.match(moved.refused, { refused: 'bad_request' })
  const rotated = put(first, {
    ...client,
    endpoint_url: masked,
    url_parts: [{ sealed: 'v1.y', digest: 'd2' }],
  })
  t.strictSame(rotated.events[0]?.['changes'], { endpoint_url: { to: masked } })
  const plain = put(rotated, client)
  t.equal(kept(plain)?.url_parts, undefined)
})

t.test('origins are normalised, and a repeat changes nothing', async (t) => {
  const origins = ['https://App.Example:443', 'https://b.example:8443', 'https://app.example']
  const first = given(actor).when('oauth_origins.put', { origins })
  const stored = ['https://app.example', 'https://b.example:8443']
  t.strictSame(first.reply, { origins: stored })
  t.strictSame(first.when('oauth_origins.put', { origins: stored }).events, [])
  const cleared = first.when('oauth_origins.put', { origins: [] })
  t.strictSame(cleared.reply, { origins: [] })
  t.strictSame((cleared.ask('directory', { id: '' }) as OrganizationDirectory).oauth_origins, [])
})
