/** Webhooks of providers: their authentication, and the source event that each becomes. */
import { createHmac } from 'node:crypto'
import t from 'tap'
import { readEvent } from '../../../gateway/commands/integrations/event.ts'
import { isFrom, shortEntries } from '../../../gateway/commands/integrations/signature.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import type { ProviderName } from '../../../protocol/events/integrations.ts'
import { providers } from '../../../protocol/events/integrations.ts'
import type { ServicePublication } from '../../../protocol/events/sources.ts'

type Headers = Readonly<Record<string, string>>
const NOW = Date.parse('2026-01-01T00:00:00Z')
const SECRET = "It's a Secret to Everybody"
const among = (headers: Headers) => (name: string) => headers[name]
const from = (
  provider: ProviderName,
  headers: Headers,
  body: string,
  entries: Readonly<Record<string, string>> = { webhook_secret: SECRET },
) => isFrom(provider, { header: among(headers), body }, entries, NOW)
const read = (provider: ProviderName, headers: Headers, body: JsonObject, text = '{}') =>
  readEvent(provider, { header: among(headers), text, body })
const typeOf = (provider: ProviderName, headers: Headers, body: JsonObject) =>
  (read(provider, headers, body) as { event_type?: string }).event_type

t.test('GitHub signs the body', async (t) => {
  // The example from docs.github.com, "Testing the webhook payload validation".
  const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
  const name = 'x-hub-signature-256'
  t.ok(from('github', { [name]: signature }, 'Hello, World!'))
  t.ok(from('github', { [name]: signature.toUpperCase().replace('SHA', 'sha') }, 'Hello, World!'))
  t.notOk(from('github', { [name]: signature }, 'Hello, World'))
  t.notOk(from('github', { [name]: signature }, 'Hello, World!', { webhook_secret: 'another one' }))
  t.notOk(from('github', { [name]: signature.slice(0, -1) }, 'Hello, World!'))
  t.notOk(from('github', {}, 'Hello, World!'))
  const empty = `sha256=${createHmac('sha256', '').update('{}').digest('hex')}`
  t.notOk(from('github', { [name]: empty }, '{}', {}), 'no secret authenticates nothing')
  t.notOk(from('github', { [name]: empty }, '{}', { webhook_secret: '' }))
})

t.test('GitLab sends its secret token, or signs with a signing token', async (t) => {
  t.ok(from('gitlab', { 'x-gitlab-token': SECRET }, '{}'))
  t.notOk(from('gitlab', { 'x-gitlab-token': `${SECRET}x` }, '{}'))
  t.notOk(from('gitlab', {}, '{}'))
  const key = Buffer.alloc(32, 7)
  const entries = { webhook_secret: SECRET, signing_token: `whsec_${key.toString('base64')}` }
  const signed = (seconds: number, more: Headers = {}) => {
    const time = String(seconds)
    const value = createHmac('sha256', key).update(`id-1.${time}.{}`).digest('base64')
    return {
      'webhook-id': 'id-1',
      'webhook-timestamp': time,
      'webhook-signature': `v1,AAAA v1,${value}`,
      ...more,
    }
  }
  const now = NOW / 1000
  t.ok(from('gitlab', signed(now), '{}', entries))
  t.notOk(from('gitlab', signed(now), '{ }', entries))
  t.notOk(from('gitlab', signed(now - 301), '{}', entries), 'too old')
  t.notOk(from('gitlab', signed(now, { 'webhook-id': 'id-2' }), '{}', entries))
  t.notOk(
    from('gitlab', { 'x-gitlab-token': SECRET }, '{}', entries),
    'the token does not replace the signature',
  )
})

t.test('a signing token without a key in base64 authenticates nothing', async (t) => {
  const time = String(NOW / 1000)
  const signedWith = (key: Buffer): Headers => ({
    'webhook-id': 'id-1',
    'webhook-timestamp': time,
    'webhook-signature': `v1,${createHmac('sha256', key).update(`id-1.${time}.{}`).digest('base64')}`,
  })
  for (const signing_token of [
    'whsec_!!!!',
    'whsec_????????????',
    'whsec_aaaa',
    'whsec_AAAAAAAAAA',
  ]) {
    const key = Buffer.from(signing_token.slice(6), 'base64')
    t.notOk(from('gitlab', signedWith(key), '{}', { signing_token }), signing_token)
    t.match(shortEntries({ signing_token }), [
      {
        field: 'entries.signing_token',
        message: 'must have at least 8 bytes in base64 after whsec_',
      },
    ])
  }
  const signing_token = `whsec_${Buffer.from('12345678').toString('base64')}`
  t.ok(from('gitlab', signedWith(Buffer.from('12345678')), '{}', { signing_token }))
  t.strictSame(shortEntries({ signing_token, webhook_secret: 'whsec_!!' }), [])
})

t.test('the event type consists of provider, resource and verb', async (t) => {
  const github = (event: string, body: JsonObject = {}) =>
    typeOf('github', { 'x-github-event': event, 'x-github-delivery': 'd' }, body)
  t.equal(github('pull_request', { action: 'opened' }), 'github.pull_request.opened')
  t.equal(github('push'), 'github.push.pushed')
  t.equal(github('delete'), 'github.delete.deleted')
  t.equal(github('something_new'), 'github.something_new.received')
  for (const action of ['deploy.prod', 'run all tests', 'é', 'x'.repeat(100)])
    t.equal(github('repository_dispatch', { action }), 'github.repository_dispatch.received')
  const gitlab = (body: JsonObject, event = 'Other Hook') =>
    typeOf('gitlab', { 'x-gitlab-event': event, 'idempotency-key': 'd' }, body)
  t.equal(
    gitlab({ object_kind: 'merge_request', object_attributes: { action: 'open' } }),
    'gitlab.merge_request.open',
  )
  t.equal(gitlab({ object_kind: 'push' }), 'gitlab.push.pushed')
  t.equal(gitlab({ object_kind: 'release', action: 'create' }), 'gitlab.release.create')
  t.equal(gitlab({}, 'Subgroup Hook'), 'gitlab.subgroup.received')
  for (const [provider, { events }] of Object.entries(providers))
    for (const name of Object.keys(events)) {
      const [resource = '', verb = ''] = name.split('.')
      const known = /^(pushed|updated)$/.test(verb)
      const type =
        provider === 'github'
          ? github(resource, known ? {} : { action: verb })
          : gitlab({
              object_kind: resource,
              ...(!known && { object_attributes: { action: verb } }),
            })
      t.equal(type, `${provider}.${name}`, 'the catalog lists the published types')
    }
})

t.test('the event contains the body, its repository and the id of the delivery', async (t) => {
  const body = {
    action: 'opened',
    repository: { full_name: 'shop/orders' },
    sender: { login: 'ada' },
  }
  t.strictSame(read('github', { 'x-github-event': 'issues', 'x-github-delivery': 'd-1' }, body), {
    event_type: 'github.issues.opened',
    source_kind: 'github',
    source_id: 'shop/orders',
    event: body,
    meta: { delivery_id: 'd-1', repository: 'shop/orders', sender: 'ada', action: 'opened' },
    depth: 0,
    dedup_key: 'github:d-1',
  })
  const keyOf = (headers: Headers, text: string) =>
    (read('gitlab', headers, { object_kind: 'push' }, text) as { dedup_key?: string }).dedup_key
  t.equal(keyOf({ 'idempotency-key': 'k', 'x-gitlab-event-uuid': 'u' }, 'a'), 'gitlab:k')
  const uuid = { 'x-gitlab-event-uuid': 'u' }
  t.equal(keyOf(uuid, 'a'), keyOf(uuid, 'a'))
  t.not(keyOf(uuid, 'a'), keyOf(uuid, 'b'), 'one event can cause two webhooks')
})

t.test('repository, sender and action are bounded, whatever the payload contains', async (t) => {
  const long = 'x'.repeat(500_000)
  const received = [
    read(
      'github',
      { 'x-github-event': 'repository_dispatch', 'x-github-delivery': 'd' },
      { action: long, repository: { full_name: long }, sender: { login: long } },
    ),
    read(
      'gitlab',
      { 'idempotency-key': 'd' },
      {
        object_kind: 'push',
        action: long,
        project: { path_with_namespace: long },
        user_username: long,
      },
    ),
  ]
  const text = 'x'.repeat(1024)
  for (const one of received) {
    const { source_id, meta } = one as ServicePublication
    t.strictSame(
      { source_id, meta },
      {
        source_id: text,
        meta: { delivery_id: 'd', repository: text, sender: text, action: text },
      },
    )
  }
})

t.test('a missing or malformed part is named', async (t) => {
  const github = (
    event: string,
    more: Headers = { 'x-github-delivery': 'd' },
    body: JsonObject = {},
  ) => read('github', { 'x-github-event': event, ...more }, body)
  t.strictSame(github(''), { fault: 'the name of the event' })
  t.strictSame(read('github', {}, {}), { fault: 'X-GitHub-Event' })
  t.strictSame(github('push', {}), { fault: 'X-GitHub-Delivery' })
  t.strictSame(read('gitlab', {}, { object_kind: 'push' }), { fault: 'Idempotency-Key' })
  t.strictSame(github('ping', {}), { test: true })
})
