/** Repository tokens from stand-ins for GitHub and GitLab, over real HTTP. */
import { generateKeyPairSync } from 'node:crypto'
import t, { type Test } from 'tap'
import { createGuard } from '../../../nodes/outbound/guard.ts'
import { createPost } from '../../../nodes/outbound/post.ts'
import { githubApi } from '../../../nodes/repositories/github.ts'
import { gitlabExpiry } from '../../../nodes/repositories/gitlab.ts'
import { createTokenIssuer } from '../../../nodes/repositories/tokens.ts'
import type { RepositoryHost } from '../../../protocol/repositories/rows.ts'
import type { IssuedToken, TokenRequest } from '../../../protocol/repositories/token.ts'
import { startGitHub, startGitLab, type TestApp } from '../../support/repository-apis.ts'

const MINUTE_MS = 60_000
const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = (type: 'pkcs1' | 'pkcs8') => keys.privateKey.export({ type, format: 'pem' }).toString()

const app: TestApp = {
  app_id: '77',
  key: keys.publicKey,
  installations: { acme: 5, other: 6 },
  repositories: ['acme/app', 'acme/lib', 'other/app'],
  contents: 'write',
}
const github = await startGitHub(() => app)
const gitlab = await startGitLab(() => 'glpat-api', ['group/sub/app'])
t.teardown(() => Promise.all([github.close(), gitlab.close()]))

const recordOf = (kind: RepositoryHost['kind'], url: string): RepositoryHost => ({
  name: 'host',
  kind,
  url,
  ...(kind === 'github_app' && { app_id: '77' }),
  secrets: [],
  version: 1,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
})
const issuing = (networks = ['127.0.0.0/8']) => {
  const clock = { now: Date.now() }
  const issue = createTokenIssuer({
    post: createPost(createGuard(networks)),
    now: () => clock.now,
    agent: 'Service',
  })
  return {
    clock,
    issue,
    github: (more: Partial<TokenRequest> = {}) =>
      issue({
        project: 'prj_1',
        host: recordOf('github_app', github.url),
        secrets: { private_key: pem('pkcs8') },
        revision: 'r1',
        full_name: 'acme/app',
        access: 'read',
        ...more,
      }),
    gitlab: (more: Partial<TokenRequest> = {}) =>
      issue({
        project: 'prj_1',
        host: recordOf('gitlab', gitlab.url),
        secrets: { api_token: 'glpat-api' },
        revision: 'r1',
        full_name: 'group/sub/app',
        access: 'read',
        ...more,
      }),
  }
}
const failing = (t: Test, api: { failing: number | undefined }, status: number) => {
  api.failing = status
  t.teardown(() => {
    api.failing = undefined
  })
}

t.test('GitHub: a token is limited to the repository and to the access', async (t) => {
  const it = issuing()
  const before = github.requests.length
  t.match(await it.github(), { token: /^ghs_read_app_/, expires_at: Number })
  t.match(await it.github({ access: 'write' }), { token: /^ghs_write_app_/ })
  t.match(
    github.requests.slice(before).map(({ method, path, body }) => ({ method, path, body })),
    [
      { method: 'GET', path: '/api/v3/repos/acme/app/installation' },
      {
        method: 'POST',
        path: '/api/v3/app/installations/5/access_tokens',
        body: { repositories: ['app'], permissions: { contents: 'read' } },
      },
      { method: 'GET' },
      { body: { repositories: ['app'], permissions: { contents: 'write' } } },
    ],
  )
})

t.test('GitHub: keys in both forms of PEM, and a configured installation', async (t) => {
  const { github: ask } = issuing()
  t.match(await ask({ secrets: { private_key: pem('pkcs1') } }), { token: /^ghs_/ })
  const before = github.requests.length
  const host = { ...recordOf('github_app', github.url), installation_id: '5' }
  t.match(await ask({ host, revision: 'r2' }), { token: /^ghs_/ })
  t.equal(github.requests.length, before + 1, 'the installation is not looked up')
  t.match(
    await ask({ host, revision: 'r2', full_name: 'other/app' }),
    { failed: 'denied', message: /no access to other\/app/ },
    'a repository of the same name of another owner',
  )
})

t.test('GitHub: what the app may not do is denied', async (t) => {
  const { github: ask } = issuing()
  t.match(await ask({ full_name: 'acme/secret' }), { failed: 'denied', message: /acme\/secret/ })
  t.match(await ask({ full_name: 'group/sub/app' }), { failed: 'denied' })
  app.contents = 'read'
  t.match(await ask({ access: 'write' }), { failed: 'denied', message: /contents: write/ })
  app.contents = 'write'
})

t.test('GitHub: a key that the app does not have, and one that is none', async (t) => {
  const { github: ask } = issuing()
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const private_key = other.export({ type: 'pkcs8', format: 'pem' }).toString()
  t.match(await ask({ secrets: { private_key } }), {
    failed: 'unavailable',
    message: /key or token/,
  })
  for (const text of ['none', '', `-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----`])
    t.match(await ask({ secrets: { private_key: text } }), {
      failed: 'unavailable',
      message: /cannot be used/,
    })
})

t.test('GitLab: a project access token with the scopes of git', async (t) => {
  const it = issuing()
  const before = gitlab.requests.length
  t.match(await it.gitlab(), { token: /^glpat-read_repository-\d/ })
  const written = (await it.gitlab({ access: 'write' })) as IssuedToken
  t.match(written.token, /^glpat-read_repository-write_repository-\d/)
  const [first] = gitlab.requests.slice(before)
  t.equal(first?.path, '/api/v4/projects/group%2Fsub%2Fapp/access_tokens')
  t.equal(first?.body['expires_at'], new Date(written.expires_at).toISOString().slice(0, 10))
  t.match(await it.gitlab({ full_name: 'group/other' }), { failed: 'denied' })
  t.match(await it.gitlab({ secrets: { api_token: 'glpat-old' }, revision: 'r2' }), {
    failed: 'unavailable',
    message: /does not accept/,
  })
})

t.test('GitLab: a token ends at a midnight, after at least an hour', async (t) => {
  const midnight = Date.parse('2026-03-01T00:00:00Z')
  t.equal(gitlabExpiry(midnight - 60 * MINUTE_MS), midnight)
  t.equal(gitlabExpiry(midnight - 59 * MINUTE_MS), midnight + 24 * 60 * MINUTE_MS)
  t.equal(gitlabExpiry(midnight), midnight + 24 * 60 * MINUTE_MS)
})

t.test('a token is reused while it lasts, and for nothing else', async (t) => {
  const it = issuing()
  const first = (await it.github()) as IssuedToken
  t.strictSame(await it.github(), first)
  it.clock.now = first.expires_at - 10 * MINUTE_MS
  t.strictSame(await it.github(), first)
  for (const more of [
    { project: 'prj_2' },
    { revision: 'r2' },
    { access: 'write' },
    { full_name: 'acme/lib' },
  ] as const)
    t.not(((await it.github(more)) as IssuedToken).token, first.token, JSON.stringify(more))
  it.clock.now += 1
  t.not(((await it.github()) as IssuedToken).token, first.token)
})

t.test('requests at the same time share one request to the host', async (t) => {
  const it = issuing()
  const before = github.requests.length
  let go = () => {}
  github.waiting = new Promise((resolve) => {
    go = resolve
  })
  const asked = [it.github(), it.github(), it.github({ project: 'prj_2' })]
  const many = Array.from({ length: 100 }, (_, n) => it.github({ revision: `many ${n}` }))
  const refused = (await Promise.all(many.slice(62))).map((one) => one)
  t.match(refused, Array(38).fill({ failed: 'unavailable', message: /Too many/ }))
  go()
  github.waiting = undefined
  const [one, same, other] = (await Promise.all(asked)) as IssuedToken[]
  t.equal(one?.token, same?.token)
  t.not(one?.token, other?.token, 'never with another project')
  await Promise.all(many)
  t.equal(github.requests.length - before, 2 * 64)
})

t.test('a host that fails is unavailable, and is asked again', async (t) => {
  const it = issuing()
  failing(t, github, 500)
  t.match(await it.github(), { failed: 'unavailable', message: /status 500/ })
  github.failing = 403
  t.match(await it.github(), { failed: 'unavailable' })
  github.failing = 201
  t.match(await it.github(), { failed: 'unavailable' }, 'an answer without a token')
  github.failing = undefined
  t.match(await it.github(), { token: /^ghs_/ })
})

t.test('only addresses that the operator allows are called', async (t) => {
  const before = github.requests.length
  t.match(await issuing([]).github(), { failed: 'unavailable', message: /not a public address/ })
  t.equal(github.requests.length, before)
})

t.test('stored tokens are answered as they are', async (t) => {
  const { issue, clock } = issuing()
  const ask = (access: TokenRequest['access'], secrets: TokenRequest['secrets']) =>
    issue({
      project: 'prj_1',
      host: recordOf('token', 'https://git.example'),
      secrets,
      revision: 'r1',
      full_name: 'a/b',
      access,
    })
  const both = { read_token: 'r', push_token: 'p' }
  t.strictSame(await ask('read', both), { token: 'r', expires_at: clock.now + 60 * MINUTE_MS })
  t.match(await ask('write', both), { token: 'p' })
  t.match(await ask('write', { read_token: 'r' }), { token: 'r' }, 'reading still works')
})

t.test('the APIs of GitHub', async (t) => {
  t.equal(githubApi('https://github.com'), 'https://api.github.com')
  t.equal(githubApi('https://acme.ghe.com'), 'https://api.acme.ghe.com')
  t.equal(githubApi('https://git.acme.example'), 'https://git.acme.example/api/v3')
  t.equal(githubApi('https://evilghe.com'), 'https://evilghe.com/api/v3')
})
