/** The settings of the OpenID provider, and the person whom its claims describe. */
import t from 'tap'
import { type Config, readConfig } from '../../../nodes/config.ts'
import { groupsIn, personOf } from '../../../nodes/outbound/oidc/claims.ts'

const read = (env: Record<string, string>): Config['console'] | readonly string[] => {
  const found = readConfig(env, [])
  return 'config' in found ? found.config.console : found.faults
}
const oidc = {
  BATON_OIDC_ISSUER: 'https://idp.example/realms/main',
  BATON_OIDC_CLIENT_ID: 'baton',
  BATON_OIDC_ROLES: '{"a": {"shop": "Admin", "*": ["Viewer", "Auditor"]}}',
}

t.test('settings of the console', async (t) => {
  t.same(read({}), { sessions: { idle: 43_200_000, lifetime: 604_800_000 } })
  t.match(read({ BATON_PUBLIC_URL: 'https://b.example/x', ...oidc }), {
    sessions: { origin: 'https://b.example' },
    oidc: { groups_claim: 'groups', roles: { a: { shop: ['Admin'], '*': ['Viewer', 'Auditor'] } } },
  })
  const { BATON_OIDC_ROLES: _, ...unmapped } = oidc
  t.match(read(unmapped), [/set BATON_OIDC_ROLES/])
  t.match(read({ BATON_OIDC_ISSUER: oidc.BATON_OIDC_ISSUER }), [/set BATON_OIDC_CLIENT_ID/])
  for (const [name, value] of [
    ['BATON_OIDC_ISSUER', 'http://idp.example'],
    ['BATON_OIDC_ISSUER', 'https://idp.example?x'],
    ['BATON_OIDC_ROLES', '{"a": {"shop": 1}}'],
    ['BATON_OIDC_ROLES', '/no/such/file'],
    ['BATON_OIDC_SCOPES', 'profile'],
    ['BATON_OIDC_DOMAINS', 'acme'],
    ['BATON_CONSOLE_IDLE', '59s'],
  ] as const)
    t.match(read({ ...oidc, [name]: value }), [new RegExp(name)], `${name}=${value}`)
  const secret = read({ ...oidc, BATON_OIDC_CLIENT_SECRET: 'with space' })
  t.notMatch(JSON.stringify(secret), 'with space', 'a wrong secret is not shown')
})

t.test('claims are data of another system', async (t) => {
  const person = (claims: object) => personOf('https://idp', 'sub', { ...claims }, 'groups')
  t.same(person({}), { issuer: 'https://idp', subject: 'sub', name: 'sub', groups: [] })
  t.match(person({ email: 'a@b.example', email_verified: true }), { email: 'a@b.example' })
  for (const email_verified of [false, undefined, 1, 'yes'])
    t.notOk('email' in person({ email: 'a@b.example', email_verified }))
  t.notOk('email' in person({ email: ['a@b.example'], email_verified: true }))
  for (const email of ['a\u202e@b.example', 'a\u0000@b.example', 'a@b\u2066.example'])
    t.notOk('email' in person({ email, email_verified: true }), 'it would change the text around')
  t.equal(person({ name: ' A\u0000\nda ' }).name, 'A da')
  t.equal(person({ name: {}, preferred_username: 'ada' }).name, 'ada')
  t.equal(person({ name: 'x'.repeat(999) }).name.length, 128)
  t.same(groupsIn({ groups: 'one' }, 'groups'), ['one'])
  t.same(groupsIn({ groups: ['a', 1, null, '', 'x'.repeat(300)] }, 'groups'), ['a'])
  t.same(groupsIn({ realm_access: { roles: ['a'] } }, 'realm_access.roles'), ['a'])
  t.same(groupsIn({ 'https://x.y/g': ['a'] }, 'https://x.y/g'), ['a'])
  t.same(groupsIn({}, 'constructor.name'), [])
  t.equal(groupsIn({ groups: new Array(2000).fill('g') }, 'groups').length, 1000)
})
