/**
 * Webhooks of GitHub and GitLab over the real stack. They are authenticated by a signature or a
 * secret token, and each is published once. Forged webhooks count against the sender's rate limit.
 */
import { createHmac } from 'node:crypto'
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, listOf, until } from '../support/given.ts'

const s = await service({ BATON_RATE_KEY: '40', BATON_RATE_ORG: '0', BATON_RATE_WINDOW: '3600' })
t.teardown(() => s.stop())
const SECRET = 'the secret of the webhook'
const PATH = '/v1/projects/default/integrations'
const store = (provider: string) =>
  s.ok('secret.put', {
    secret_name: `integrations/${provider}`,
    entries: { webhook_secret: SECRET },
  })
const post = (provider: string, body: string, headers: Record<string, string>) =>
  s.raw('POST', `${PATH}/${provider}`, { key: null, body, headers })
const github = (event: string, delivery: string, body: string, secret = SECRET, more = {}) =>
  post('github', body, {
    'X-GitHub-Event': event,
    'X-GitHub-Delivery': delivery,
    'X-Hub-Signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
    ...more,
  })
const opened = JSON.stringify({
  action: 'opened',
  repository: { full_name: 'shop/orders' },
  pull_request: { title: 'Café ☕' },
})
const sourcesOf = async (kind: string) =>
  listOf(await s.ok('catalog.events')).filter((source) => source['kind'] === kind)

t.test('webhooks of a provider are accepted once its secret is stored', async (t) => {
  t.equal((await github('ping', 'd-0', '{}')).status, 404)
  t.strictSame(await sourcesOf('integration'), [])
  await store('github')
  t.equal((await github('ping', 'd-0', '{}')).status, 204, 'a ping is answered')
  t.match(await sourcesOf('integration'), [{ prefix: 'github', readiness: 'ready' }])
})

t.test('a secret that is too short to verify webhooks is refused', async (t) => {
  const faultsOf = async (provider: string, entries: object) =>
    fieldsOf(
      await s.refused(
        'secret.put',
        { secret_name: `integrations/${provider}`, entries },
        400,
        'bad_request',
      ),
    )
  t.strictSame(await faultsOf('github', { webhook_secret: '7 chars' }), ['entries.webhook_secret'])
  t.strictSame(await faultsOf('gitlab', { webhook_secret: 'a', signing_token: 'b' }), [
    'entries.webhook_secret',
    'entries.signing_token',
  ])
  await s.ok('secret.put', { secret_name: 'other', entries: { webhook_secret: 'a' } })
})

t.test('a signed webhook starts the runs of its triggers, and a repeat starts none', async (t) => {
  const loop = await s.ok('loop.create', {
    name: 'Reviews',
    status: 'active',
    triggers: [{ kind: 'event', key: 'pr', config: { event_type: 'github.pull_request.*' } }],
    steps: [{ id: 'nap', kind: 'sleep', config: { duration: '1ms' } }],
  })
  const first = await github('pull_request', 'd-1', opened)
  t.match(first, { status: 202, body: { source_event_id: /^sevt_/, status: 'accepted' } })
  const source_event_id = String(first.body['source_event_id'])
  t.match(await s.ok('event.get', { id: source_event_id }), {
    event_type: 'github.pull_request.opened',
    source_kind: 'github',
    source_id: 'shop/orders',
    event: { pull_request: { title: 'Café ☕' } },
    meta: { delivery_id: 'd-1', repository: 'shop/orders' },
    fired_triggers: 1,
  })
  t.match(await github('pull_request', 'd-1', opened), {
    status: 202,
    body: { source_event_id, deduped: true },
  })
  const form = new URLSearchParams({ payload: opened }).toString()
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  t.match(await github('pull_request', 'd-2', form, SECRET, type), { status: 202 })
  const runs = await until(
    async () => listOf(await s.ok('run.list', { loop_id: String(loop['id']) })),
    (found) => found.length >= 2,
  )
  t.equal(runs.length, 2)
})

t.test('GitLab webhooks are authenticated by their secret token', async (t) => {
  await store('gitlab')
  const body = JSON.stringify({
    object_kind: 'merge_request',
    project: { path_with_namespace: 'shop/orders' },
    object_attributes: { action: 'open' },
  })
  const send = (token: string) =>
    post('gitlab', body, {
      'X-Gitlab-Event': 'Merge Request Hook',
      'X-Gitlab-Token': token,
      'Idempotency-Key': 'g-1',
    })
  t.match(await send(SECRET), { status: 202 })
  t.match(await send(SECRET), { status: 202, body: { deduped: true } })
  t.match(await send('a guess'), { status: 401, body: { error: { code: 'invalid_signature' } } })
  const published = listOf(await s.ok('event.list', { source_kind: 'gitlab' }))
  t.match(published, [{ event_type: 'gitlab.merge_request.open', source_id: 'shop/orders' }])
  t.equal(published.length, 1)
})

t.test('a request that is no webhook of the provider is rejected', async (t) => {
  t.match(await github('push', 'd-3', '[]'), { status: 400 })
  t.match(await github('push', 'd-3', 'no json'), { status: 400 })
  t.match(await github('push', '', '{}'), { status: 400 })
  t.match(await github('push', 'd-3', `"${'x'.repeat(4_194_304)}"`), { status: 413 })
  t.match(await post('bitbucket', '{}', {}), { status: 404 })
})

t.test('invalid signatures count against the sender, not against the receiver', async (t) => {
  const statuses: number[] = []
  for (let i = 0; i < 45; i++)
    statuses.push((await github('push', `f-${i}`, '{}', 'another secret')).status)
  t.strictSame([...new Set(statuses)], [401, 429])
  t.match(await github('push', 'd-4', '{}'), { status: 202 })
  await s.ok('secret.delete', { secret_name: 'integrations/gitlab' })
  t.match(await sourcesOf('integration'), [{ prefix: 'github' }])
})

t.test('clients cannot publish events with the prefix of a provider', async (t) => {
  for (const event_type of ['github.pull_request.opened', 'gitlab.push.pushed'])
    t.strictSame(
      fieldsOf(await s.refused('event.publish', { event_type, event: {} }, 400, 'bad_request')),
      ['event_type'],
    )
  await s.ok('event.publish', { event_type: 'githubber.done', event: {} })
})
