/**
 * Repository hosts and the credential broker over HTTP: the access of environments to repositories,
 * hosts that change, fail or are missing, and secrets that are never revealed. The hosts are
 * stand-ins for GitHub and GitLab, and a git server with real git as its client.
 */
import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startGitServer } from '../../../client/tour/git/server.ts'
import { createLog } from '../../../nodes/observe/log.ts'
import { gitEnv } from '../../support/git-env.ts'
import { startGitHub, startGitLab, type TestApp } from '../../support/repository-apis.ts'
import { service } from '../../support/service.ts'
import { fieldsOf, listOf } from '../support/given.ts'

const exec = promisify(execFile)
const newKey = () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { publicKey, pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}
const [first, second] = [newKey(), newKey()]
const app: TestApp & { key: unknown } = {
  app_id: '77',
  key: first.publicKey,
  installations: { acme: 5 },
  repositories: ['acme/app', 'acme/lib', 'acme/secret'],
  contents: 'write',
}
const folder = mkdtempSync(join(tmpdir(), 'broker-'))
const github = await startGitHub(() => app)
const gitlab = await startGitLab(() => 'glpat-MARKER-api-token', ['group/sub/site'])
const git = await startGitServer(join(folder, 'repositories'))
const tokens = { read: 'read-MARKER-token', push: 'push-MARKER-token' }
await git.add('team/docs', tokens)
await git.add('team/wiki', tokens)

const lines: string[] = []
const log = createLog({
  level: 'trace',
  node: 'n1',
  to: { write: (line: string) => void lines.push(line) },
})
const s = await service({ BATON_OUTBOUND_ALLOW: '127.0.0.0/8' }, { log })
t.teardown(async () => {
  await s.stop()
  await Promise.all([github.close(), gitlab.close(), git.close()])
  rmSync(folder, { recursive: true, force: true })
})

/** Responses about repository hosts, as JSON. None may contain a secret. */
const said: string[] = []
const issued = new Set<string>()
const put = async (host_name: string, body: object) => {
  const host = await s.ok('repository_host.put', { host_name, ...body })
  said.push(JSON.stringify(host))
  return host
}
const githubHost = (private_key = first.pem) => ({
  kind: 'github_app',
  url: `${github.url}/`,
  app_id: '77',
  private_key,
})
const gitHost = { kind: 'token', url: git.url, read_token: tokens.read, push_token: tokens.push }
const repositories = [
  { full_name: 'acme/app', push: true },
  { full_name: 'acme/lib', push: false },
  { full_name: 'acme/gone', push: false },
  { full_name: 'group/sub/site', push: true, provider: 'gitlab' },
  { full_name: 'team/docs', push: true, provider: 'internal' },
  { full_name: 'team/wiki', push: false, provider: 'internal' },
  { full_name: 'lost/one', push: false, provider: 'missing' },
]
const environment = await s.ok('environment.create', { name: 'desk', repositories })
const environment_id = environment['id']
const credential = async (repo_full_name: string, more: object = {}) => {
  const answer = await s.ok('environment.git_credentials', {
    environment_id,
    repo_full_name,
    ...more,
  })
  issued.add(String(answer['token']))
  return answer
}
const refused = async (repo_full_name: string, status: number, code: string) => {
  const input = { environment_id, repo_full_name }
  const error = await s.refused('environment.git_credentials', input, status, code)
  said.push(JSON.stringify(error))
  return error
}

t.test('without a host, the answer says what to configure', async (t) => {
  const { message } = await refused('acme/app', 503, 'service_unavailable')
  t.match(message, /no repository host with the name "github".*repository-hosts\/github/)
})

t.test('hosts are added, read, replaced and listed without their secrets', async (t) => {
  const host = await put('github', githubHost())
  t.match(host, {
    name: 'github',
    kind: 'github_app',
    url: github.url,
    app_id: '77',
    secrets: ['private_key'],
    version: 1,
  })
  t.strictSame(await put('github', githubHost()), host, 'a repeat changes nothing')
  await put('gitlab', { kind: 'gitlab', url: gitlab.url, api_token: 'glpat-MARKER-api-token' })
  t.match(await put('internal', gitHost), { secrets: ['read_token', 'push_token'] })
  t.strictSame(await s.ok('repository_host.get', { host_name: 'github' }), host)
  const list = await s.ok('repository_host.list')
  t.strictSame(
    listOf(list).map(({ name }) => name),
    ['github', 'gitlab', 'internal'],
  )
  said.push(JSON.stringify(list))
  await s.refused('repository_host.get', { host_name: 'none' }, 404, 'not_found')
  await s.refused('repository_host.delete', { host_name: 'none' }, 404, 'not_found')
})

t.test('invalid hosts are refused without their secrets', async (t) => {
  const fields = async (body: object, host_name = 'other') => {
    const input = { host_name, ...body }
    const error = await s.refused('repository_host.put', input, 400, 'bad_request')
    said.push(JSON.stringify(error))
    return fieldsOf(error)
  }
  const token = { kind: 'token', url: 'https://git.invalid', read_token: 'x' }
  t.strictSame(await fields({ kind: 'token' }), ['read_token', 'url'])
  t.strictSame(await fields({ kind: 'github_app' }), ['app_id', 'private_key'])
  t.strictSame(await fields({ ...token, api_token: 'y' }), ['api_token'])
  t.strictSame(await fields({ ...token, read_token: 'two\nlines-MARKER' }), ['read_token'])
  t.strictSame(await fields({ ...token }, 'Upper'), ['host_name'])
  for (const private_key of [
    'none-MARKER',
    generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  ])
    t.strictSame(await fields(githubHost(private_key)), ['private_key'])
  for (const url of [
    'git.invalid',
    'ssh://git.invalid',
    'https://me:MARKER@git.invalid',
    'https://git.invalid/?a=b',
    'https://git.invalid/#a',
    'http://192.0.2.1',
  ])
    t.strictSame(await fields({ ...token, url }), ['url'], url)
  const app_of = (url: string) => fields({ ...githubHost(), url })
  t.strictSame(await app_of('https://10.0.0.1'), ['url'], 'a network that is not allowed')
})

t.test('the declaration decides whether a credential can push', async (t) => {
  t.match(await credential('acme/app', { operation: 'push' }), {
    host: new URL(github.url).host,
    url: github.url,
    username: 'x-access-token',
    token: /^ghs_write_app_/,
    repo_full_name: 'acme/app',
  })
  t.match(await credential('acme/app', { operation: 'fetch' }), { token: /^ghs_write_app_/ })
  for (const operation of ['clone', 'fetch', 'push'])
    t.match(await credential('acme/lib', { operation }), { token: /^ghs_read_lib_/ }, operation)
  t.match(await credential('ACME/Lib'), { repo_full_name: 'acme/lib' })
  t.match(await credential('group/sub/site'), {
    username: 'oauth2',
    token: /^glpat-read_repository-write_repository-/,
  })
})

t.test('other repositories, environments and projects get nothing', async (t) => {
  const requests = github.requests.length
  t.match(await refused('acme/secret', 403, 'forbidden'), { message: /not declared/ })
  await refused('acme/app/../secret', 400, 'bad_request')
  await refused('acme/.git', 403, 'forbidden')
  t.equal(github.requests.length, requests, 'GitHub was not asked')
  t.match(await refused('acme/gone', 403, 'forbidden'), {
    message: /no access to acme\/gone/,
  })
  const input = { environment_id, repo_full_name: 'acme/app' }
  await s.ok('project.create', { name: 'elsewhere', handle: 'elsewhere' })
  const elsewhere = { ...input, project: 'elsewhere' }
  await s.refused('environment.git_credentials', elsewhere, 404, 'not_found')
  const other = await s.ok('environment.create', { project: 'elsewhere', repositories })
  await s.refused(
    'environment.git_credentials',
    { ...elsewhere, environment_id: other['id'] },
    503,
    'service_unavailable',
  )
})

t.test('only administrators change hosts, and only workers get credentials', async () => {
  const viewer = await s.ok('key.create_organization', { name: 'viewer', role: 'Viewer' })
  const key = String(viewer['key'])
  await s.ok('repository_host.list', {}, { key })
  await s.ok('repository_host.get', { host_name: 'github' }, { key })
  const input = { host_name: 'github', ...githubHost() }
  await s.refused('repository_host.put', input, 403, 'permission_denied', { key })
  const host = { host_name: 'github' }
  await s.refused('repository_host.delete', host, 403, 'permission_denied', { key })
  const wanted = { environment_id, repo_full_name: 'acme/app' }
  await s.refused('environment.git_credentials', wanted, 403, 'permission_denied', { key })
})

t.test('git clones and pushes with the credentials', async (t) => {
  const env = gitEnv(folder)
  const cloned = async (repository: string, at: string) => {
    const { url, username, token } = await credential(repository, { operation: 'push' })
    const remote = `${String(url).replace('://', `://${username}:${token}@`)}/${repository}.git`
    await exec('git', ['clone', '--quiet', remote, at], { env })
    await exec('git', ['-C', at, 'commit', '--quiet', '--allow-empty', '-m', 'x'], { env })
    return () => exec('git', ['-C', at, 'push', '--quiet', 'origin', 'HEAD:main'], { env })
  }
  await (await cloned('team/docs', join(folder, 'docs')))()
  t.match(git.requests.at(-1), { service: 'git-receive-pack', status: 200 })
  const push = await cloned('team/wiki', join(folder, 'wiki'))
  await t.rejects(push(), /403/)
})

t.test('a new key of the app is used at once, and the old one no longer', async (t) => {
  const { token } = await credential('acme/app')
  app.key = second.publicKey
  t.equal((await credential('acme/app'))['token'], token, 'a token that lasts is reused')
  t.match(await put('github', githubHost(second.pem)), { version: 2 })
  t.not((await credential('acme/app'))['token'], token)
  await put('github', githubHost(first.pem))
  const { message } = await refused('acme/app', 503, 'service_unavailable')
  t.match(message, /does not accept the stored key/)
  await put('github', githubHost(second.pem))
  await credential('acme/app')
})

t.test('a host that fails, is deleted or does not answer is unavailable', async (t) => {
  await put('github', { ...githubHost(second.pem), app_id: '77', installation_id: '5' })
  github.failing = 502
  t.match(await refused('acme/lib', 503, 'service_unavailable'), { message: /status 502/ })
  github.failing = undefined
  await credential('acme/lib')
  await s.ok('repository_host.delete', { host_name: 'github' })
  t.match(await refused('acme/lib', 503, 'service_unavailable'), { message: /"github"/ })
  const closed = await startGitHub(() => app)
  await put('github', { ...githubHost(second.pem), url: closed.url })
  await closed.close()
  t.match(await refused('acme/lib', 503, 'service_unavailable'), { message: /did not answer/ })
  await refused('lost/one', 503, 'service_unavailable')
  await s.ok('repository_host.delete', { host_name: 'internal' })
  await refused('team/docs', 503, 'service_unavailable')
})

t.test('a destroyed environment gets nothing', async () => {
  await s.ok('environment.delete', { environment_id })
  await refused('acme/lib', 404, 'not_found')
})

t.test('changes are in the audit log, and secrets and tokens are nowhere', async (t) => {
  const { items } = await s.ok('audit.list', { resource_type: 'repository_host', limit: 200 })
  const audited = items as unknown as { action: string; resource_name: string }[]
  t.match(
    audited.map(({ action, resource_name }) => `${action} ${resource_name}`),
    ['delete internal', 'create github', 'delete github', 'update github'],
  )
  said.push(JSON.stringify(items))
  t.ok(
    lines.some((line) => line.includes('git_credential_issued') && line.includes('acme/app')),
    'the log has who got a credential',
  )
  await s.restart()
  const stored = readdirSync(s.data, { recursive: true, encoding: 'utf8' })
    .map((name) => join(s.data, name))
    .filter((name) => statSync(name).isFile())
    .map((name) => readFileSync(name))
  const has = (text: string) => stored.some((bytes) => bytes.includes(text))
  t.ok(has('repository_host.stored') && has('installation_id'), 'the search finds what is stored')
  t.ok(issued.size > 6)
  const [, line = ''] = second.pem.split('\n')
  for (const secret of [
    ...issued,
    ...[first, second].flatMap(({ pem }) => pem.split('\n').slice(1, -2)),
    JSON.stringify(first.pem).slice(1, -1),
    line,
    'glpat-MARKER-api-token',
    tokens.read,
    tokens.push,
    'MARKER',
  ]) {
    t.notOk(said.join('\n').includes(secret), `not in an answer: ${secret}`)
    t.notOk(lines.join('\n').includes(secret), `not in the log: ${secret}`)
    t.notOk(has(secret), `not stored: ${secret}`)
  }
})
