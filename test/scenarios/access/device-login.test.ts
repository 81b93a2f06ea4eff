/**
 * Device login (RFC 8628) over the real stack, with two gateways. A user answers the request of a
 * device through the API or on the page.
 */
import { join } from 'node:path'
import { Command } from 'commander'
import t from 'tap'
import { addLogin } from '../../../client/cli/connection/login.ts'
import { readProfiles } from '../../../client/cli/connection/profiles.ts'
import { service } from '../../support/service.ts'
import { listOf } from '../support/given.ts'

const s = await service({ BATON_NODE_ID: 'one' })
t.teardown(() => s.stop())
const other = await s.add({ BATON_NODE_ID: 'two', BATON_ROLES: 'gateway' })
const B = { url: other.url ?? '' }
const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
type Form = Readonly<Record<string, string>>
const form = (path: string, fields: Form, at: { url?: string } = {}) =>
  s.raw('POST', path, {
    key: null,
    body: new URLSearchParams(fields).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    ...at,
  })
const ask = async (fields: Form = {}) =>
  (await form('/v1/auth/device/code', { service_label: 'laptop of Ann', ...fields }))
    .body as Record<
    'device_code' | 'user_code' | 'verification_uri' | 'verification_uri_complete',
    string
  >
const poll = (device_code: string, at = {}) =>
  form('/v1/auth/device/token', { grant_type: GRANT, device_code }, at)
const person = async (name: string, project = 'default') => {
  const user = await s.ok('user.create', { project, name, role_ids: ['role_operator'] })
  const token = await s.ok('token.create', { project, id: user['id'], name: 'first' })
  return { id: String(user['id']), key: String(token['key']) }
}
const ann = await person('Ann')

t.test('a user approves a device through the API; its token is listed and revocable', async (t) => {
  const { device_code, user_code, verification_uri, verification_uri_complete } = await ask({
    service_client: 'baton',
    service_client_version: '0.1.0',
  })
  t.match(user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
  t.equal(verification_uri, `${s.url}/device`)
  t.equal(verification_uri_complete, `${s.url}/device?user_code=${user_code}`)
  const pending = await poll(device_code)
  t.match(pending, { status: 400, body: { error: 'authorization_pending' } })
  t.equal(pending.headers.get('cache-control'), 'no-store')
  t.match(await poll(device_code, B), { status: 400, body: { error: 'slow_down' } })
  await s.refused('device.answer', { user_code, decision: 'allow' }, 403, 'permission_denied')
  const answered = await s.ok(
    'device.answer',
    { user_code: user_code.replace('-', ' ').toLowerCase(), decision: 'allow' },
    { key: ann.key },
  )
  t.match(answered, { status: 'approved', label: 'laptop of Ann', client: 'baton 0.1.0' })
  const given = await poll(device_code)
  t.match(given, {
    status: 200,
    body: {
      access_token: /^batc_[0-9a-f]{40}/,
      token_type: 'Bearer',
      credential_id: /^tok_/,
      project_id: /^prj_/,
      project_handle: 'default',
    },
  })
  const { access_token: key, credential_id } = given.body as Record<string, string>
  const as = { key: key ?? '' }
  t.match(await s.ok('me.get', {}, { ...as, ...B }), {
    principal: { id: ann.id },
    credential: { id: credential_id, type: 'cli_token' },
  })
  t.match(await poll(device_code), { status: 400, body: { error: 'invalid_grant' } })
  t.match(listOf(await s.ok('cli_credential.list', {}, as)), [
    { id: credential_id, status: 'active', label: `laptop of Ann (${user_code})` },
    { label: 'first' },
  ])
  await s.ok('cli_credential.revoke', { token: credential_id }, { key: ann.key })
  await s.refused('me.get', {}, 401, 'unauthorized', { ...as, ...B })
  await s.refused('cli_credential.list', {}, 404, 'not_found')
})

t.test('a user approves or denies a device on the page', async (t) => {
  const { device_code, user_code } = await ask({ service_label: '<b>laptop' })
  const page = await s.raw('GET', `/device?user_code=${user_code}`, { key: null })
  t.equal(page.status, 200)
  t.match(page.text, /&#60;b&#62;laptop requests access to act as you/)
  t.match(page.headers.get('content-security-policy'), /default-src 'none'.*form-action 'self'/)
  t.notMatch(page.text, /<script|<b>/)
  t.match((await s.raw('GET', '/device', { key: null })).text, /<input [^>]*name="user_code"/)
  t.equal((await s.raw('GET', '/device?user_code=XXXX-XXXX', { key: null })).status, 404)
  const answer = (fields: Form) => form('/device', { user_code, decision: 'allow', ...fields }, B)
  t.equal((await answer({ credential: 'batc_wrong' })).status, 401)
  t.equal(
    (await answer({ credential: s.key })).status,
    403,
    'a service key cannot approve a device',
  )
  t.equal((await answer({ credential: ann.key, decision: 'perhaps' })).status, 400)
  t.equal((await answer({ credential: `${ann.key}.elsewhere` })).status, 403)
  t.match(await answer({ credential: ann.key }), { status: 200, text: /signed in/ })
  t.equal((await poll(device_code)).status, 200)
  const denied = await ask()
  await form('/device', { ...denied, decision: 'deny', credential: ann.key })
  t.match(await poll(denied.device_code), { status: 400, body: { error: 'access_denied' } })
})

t.test('a device token works only in the project of its user', async (t) => {
  await s.ok('project.create', { name: 'Shop', handle: 'shop' })
  const bob = await person('Bob', 'shop')
  const elsewhere = await ask({ service_requested_project_handle: 'shop' })
  const { user_code } = elsewhere
  await s.refused('device.answer', { user_code, decision: 'allow' }, 409, 'conflict', {
    key: ann.key,
  })
  await s.ok('device.answer', { user_code, decision: 'allow' }, { key: bob.key })
  const { body } = await poll(elsewhere.device_code)
  t.equal(body['project_handle'], 'shop')
  const as = { key: String(body['access_token']) }
  await s.ok('me.get', { project: 'shop' }, as)
  await s.refused('me.get', { project: 'default' }, 403, 'forbidden', as)
  await s.refused('cli_credential.revoke', { token: body['credential_id'] }, 404, 'not_found', {
    key: ann.key,
  })
})

t.test('no token is issued once the user who approved it is deleted', async (t) => {
  const eve = await person('Eve')
  const { device_code, user_code } = await ask()
  await s.ok('device.answer', { user_code, decision: 'allow' }, { key: eve.key })
  await s.ok('user.delete', { id: eve.id })
  t.match(await poll(device_code), { status: 400, body: { error: 'access_denied' } })
})

t.test('a device token expires with the token that approved it, and is issued once', async (t) => {
  const user = await s.ok('user.create', { name: 'Joe', role_ids: ['role_operator'] })
  const expires_at = new Date(Date.now() + 3_600_000).toISOString()
  const { key } = await s.ok('token.create', { id: user['id'], name: 'first', expires_at })
  const { device_code, user_code } = await ask()
  await s.ok('device.answer', { user_code, decision: 'allow' }, { key: String(key) })
  const polls = await Promise.all([poll(device_code), poll(device_code, B), poll(device_code)])
  t.strictSame(polls.map(({ status }) => status).sort(), [200, 400, 400])
  const tokens = listOf(await s.ok('token.list', { id: user['id'] }))
  t.strictSame(
    tokens.map((token) => [token['name'], token['expires_at']]),
    [
      [`laptop of Ann (${user_code})`, expires_at],
      ['first', expires_at],
    ],
  )
})

t.test('malformed forms are rejected with the errors of RFC 6749', async (t) => {
  const refused = async (path: string, body: string, error: string, type?: string) => {
    const headers = { 'content-type': type ?? 'application/x-www-form-urlencoded' }
    const answer = await s.raw('POST', path, { key: null, body, headers })
    t.match(answer, { status: 400, body: { error, error_description: /./ } }, body.slice(0, 60))
  }
  const [code, token] = ['/v1/auth/device/code', '/v1/auth/device/token']
  await refused(code, '{}', 'invalid_request', 'application/json')
  await refused(code, 'service_label=a&service_label=b', 'invalid_request')
  await refused(code, `service_label=${'x'.repeat(101)}`, 'invalid_request')
  await refused(code, 'service_label=%1b%5B2J', 'invalid_request')
  await refused(code, `service_label=${'x'.repeat(20_000)}`, 'invalid_request')
  await refused(token, `grant_type=${GRANT}`, 'invalid_request')
  await refused(token, 'grant_type=password&device_code=x', 'unsupported_grant_type')
  await refused(token, `grant_type=${GRANT}&device_code=x`, 'invalid_grant')
  await refused(token, `grant_type=${GRANT}&device_code=%ff%00`, 'invalid_grant')
  await refused(token, `${'&='.repeat(2000)}grant_type=x`, 'invalid_request')
  for (const name of ['__proto__', 'constructor', 'hasOwnProperty', ' ', '%'])
    t.equal((await form(code, { [name]: 'x' })).status, 200, name)
})

t.test('baton login and baton logout complete the device login', async (t) => {
  const env = { BATON_CONFIG: join(t.testdir({}), 'profiles.json') }
  const notes: string[] = []
  const program = new Command('baton')
  addLogin(
    program,
    { env, print: () => {}, note: (line) => void notes.push(line), guarded: (action) => action },
    {
      fetch,
      // The user answers while the command waits.
      pause: async () => {
        const user_code = /code (\S+)\./.exec(notes[0] ?? '')?.[1]
        await s.ok('device.answer', { user_code, decision: 'allow' }, { key: ann.key })
      },
    },
  )
  await program.parseAsync(['login', '--server', s.url, '--label', 'box'], { from: 'user' })
  t.match(notes[0], `Open ${s.url}/device?user_code=`)
  const { current, profiles } = readProfiles(env)
  t.equal(current, 'default')
  const key = profiles['default']?.key ?? ''
  t.match(await s.ok('me.get', {}, { key }), { credential: { name: /^box \(/ } })
  await program.parseAsync(['logout'], { from: 'user' })
  t.strictSame(readProfiles(env), { profiles: {} })
  await s.refused('me.get', {}, 401, 'unauthorized', { key })
})

t.test('a device that requests another organization gets no code', async (t) => {
  t.match(await form('/v1/auth/device/code', { service_requested_org_id: 'org_other' }), {
    status: 400,
    body: { error: 'invalid_request', error_description: /organization/ },
  })
  const [, id = ''] =
    /organization (\S+);/.exec(
      String(
        (await form('/v1/auth/device/code', { service_requested_org_id: 'x' })).body[
          'error_description'
        ],
      ),
    ) ?? []
  t.ok(
    (await ask({ service_requested_org_id: id })).device_code,
    'its own organization is accepted',
  )
})
