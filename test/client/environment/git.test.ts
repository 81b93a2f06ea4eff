/** The actions on repositories, with real git and a git server over HTTP. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { bash } from '../../../client/environment/actions/bash.ts'
import { gitClone } from '../../../client/environment/git/clone.ts'
import { gitDiff, gitFetch, gitStatus } from '../../../client/environment/git/git.ts'
import { CredentialRelay } from '../../../client/environment/git/relay.ts'
import type { AskCredential } from '../../../client/environment/git/remote.ts'
import { BatonError } from '../../../client/errors.ts'
import { startGitServer } from '../../../client/tour/git/server.ts'
import { execute, failure, workspaceOf } from './support.ts'

const TOKENS = { read: 'token-for-reading', push: 'token-for-pushing' }
const EXPIRES = '2031-02-03T04:05:06.789Z'
const folder = t.testdir({})
const server = await startGitServer(join(folder, 'repositories'))
t.teardown(() => server.close())
const bare = await server.add('acme/app', TOKENS)
await server.add('acme/other', TOKENS)
const git = (...args: string[]): string =>
  execFileSync('git', ['-C', join(folder, 'work'), ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      PATH: process.env['PATH'],
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_AUTHOR_NAME: 'A',
      GIT_AUTHOR_EMAIL: 'a@example.org',
      GIT_COMMITTER_NAME: 'A',
      GIT_COMMITTER_EMAIL: 'a@example.org',
    },
  }).trim()
mkdirSync(join(folder, 'work'))
git('clone', '--quiet', bare, '.')
const commitOf = (file: string, content: string): string => {
  writeFileSync(join(folder, 'work', file), content)
  git('add', '.')
  git('commit', '--quiet', '-m', file)
  return git('rev-parse', 'HEAD')
}
const first = commitOf('readme', 'one\n')
const main = commitOf('second', 'two\n')
git('push', '--quiet', 'origin', 'HEAD:main')
git('checkout', '--quiet', '-b', 'topic')
const topic = commitOf('topic', 'three\n')
git('push', '--quiet', 'origin', 'topic', 'topic:refs/pull/7/head')

const host = new URL(server.url).host
/** Issues credentials as the service does; `scope` selects the token. */
const answering =
  (scope: keyof typeof TOKENS, asked: string[] = []): AskCredential =>
  async (repo_full_name, operation) => {
    asked.push(`${operation} ${repo_full_name}`)
    if (repo_full_name !== 'acme/app')
      throw new BatonError(403, 'permission_denied', `${repo_full_name} is not declared`)
    return {
      host,
      username: '',
      token: TOKENS[scope],
      expires_at: EXPIRES,
      repo_full_name,
      url: server.url,
    }
  }
const REPO = { repo_full_name: 'acme/app' }
const given = async (t: Pick<Test, 'teardown'>, scope: keyof typeof TOKENS = 'read') => {
  const asked: string[] = []
  const world = await workspaceOf(t, answering(scope, asked))
  const pauses: number[] = []
  const clone = gitClone(world, async (ms) => void pauses.push(ms))
  return { ...world, world, asked, pauses, clone }
}
/** Searches a folder and its subfolders. Returns the paths of the files that contain the text. */
const containing = (root: string, text: string): string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text))

t.test('the default branch is cloned, and no credential is stored', async (t) => {
  const { clone, inside, outside, asked, world } = await given(t)
  const result = await execute(clone, REPO)
  t.match(result, {
    repo_full_name: 'acme/app',
    dir: 'app',
    path: join(world.workspace.root, 'app'),
    remote_url: `${server.url}/acme/app.git`,
    branch: 'main',
    commit: main,
    head_sha: main,
    stderr: /Cloning/,
    exit_code: 0,
    credential_expires_at: EXPIRES,
  })
  for (const name of ['requested_branch', 'requested_commit', 'fetch_ref', 'depth', 'shallow'])
    t.notOk(name in result, name)
  t.equal(readFileSync(join(inside, 'app/second'), 'utf8'), 'two\n')
  t.strictSame(asked, ['clone acme/app', 'push acme/app'], 'the helper always asks for push')
  t.strictSame(containing(outside, TOKENS.read), [])
  t.match(await failure(clone, REPO), { name: 'not_empty' })
})

t.test('a branch, a shallow clone, and a clone into the workspace itself', async (t) => {
  const { clone, inside } = await given(t)
  t.match(await execute(clone, { ...REPO, dest: '.', branch: 'topic', depth: 1 }), {
    dir: '.',
    requested_branch: 'topic',
    branch: 'topic',
    commit: topic,
    depth: 1,
    shallow: true,
  })
  t.ok(existsSync(join(inside, '.git')))
})

t.test('an exact commit and a reference are checked out', async (t) => {
  const { clone } = await given(t)
  const detached = await execute(clone, { ...REPO, dest: 'a/b', commit: first })
  t.match(detached, { dir: 'a/b', requested_commit: first, commit: first })
  t.notOk('branch' in detached, 'no branch is checked out')
  t.match(await execute(clone, { ...REPO, dest: 'c', commit: first, branch: 'work' }), {
    branch: 'work',
    head_sha: first,
  })
  const pull = { ...REPO, fetch_ref: 'refs/pull/7/head' }
  t.match(await execute(clone, { ...pull, dest: 'd', depth: 1 }), { commit: topic, shallow: true })
  t.match(await execute(clone, { ...pull, dest: 'e', commit: main }), { commit: main })
  t.match(await execute(clone, { ...REPO, dest: 'f', commit: first.slice(0, 10) }), {
    commit: first,
  })
})

t.test('a missing reference fails at once, and other failures are repeated', async (t) => {
  const { clone, world, inside, pauses } = await given(t)
  for (const target of [
    { branch: 'absent' },
    { fetch_ref: 'refs/pull/9/head' },
    { commit: 'f'.repeat(40) },
  ])
    t.match(await failure(clone, { ...REPO, ...target }), { name: 'git_failed' }, target)
  t.strictSame(pauses, [])
  t.strictSame(readdirSync(join(inside, 'app')), [], 'the folder is empty again')
  const unreachable = gitClone(
    {
      ...world,
      ask: async (...given) => ({ ...(await world.ask(...given)), url: 'http://127.0.0.1:9' }),
    },
    async (ms) => void pauses.push(ms),
  )
  t.match(await failure(unreachable, REPO), { name: 'git_failed', message: /127\.0\.0\.1/ })
  t.strictSame(pauses, [2000, 2000])
})

t.test('invalid and refused repositories are not cloned', async (t) => {
  const { clone, inside } = await given(t)
  for (const parameters of [
    {},
    { repo_full_name: 'app' },
    { repo_full_name: '../app' },
    { repo_full_name: 'acme/-app' },
    { ...REPO, branch: '--upload-pack=x' },
    { ...REPO, fetch_ref: '-x' },
    { ...REPO, commit: 'main' },
    { ...REPO, depth: 0 },
  ])
    t.match(await failure(clone, parameters), { name: 'invalid_parameters' }, parameters)
  t.match(await failure(clone, { ...REPO, dest: '../x' }), { name: 'outside_workspace' })
  t.match(await failure(clone, { repo_full_name: 'acme/other' }), {
    name: 'permission_denied',
    message: 'acme/other is not declared',
  })
  t.strictSame(readdirSync(inside), [])
})

t.test('a clone is changed, shown, pushed and fetched', async (t) => {
  const { clone, world, outside, lines } = await given(t, 'push')
  await execute(clone, REPO)
  const dir = 'app'
  const run = (command: string) => execute(bash(world), { command, dir })
  await run('echo changed > readme; git checkout -q -b feature')
  t.match(await execute(gitStatus(world), { dir }), {
    stdout: /## feature\n M readme/,
    exit_code: 0,
  })
  t.match(await execute(gitDiff(world), { dir, context: 0 }), { stdout: /\n-one\n\+changed\n/ })
  t.match(await execute(gitDiff(world), { dir, staged: true }), { stdout: '' })
  t.match(await run('git commit -qam change && git push -q origin feature'), { exit_code: 0 })
  const pushed = execFileSync('git', ['-C', bare, 'rev-parse', 'feature'], { encoding: 'utf8' })
  t.match(await run('git rev-parse HEAD'), { stdout: pushed })
  t.match(await execute(gitFetch(world), { dir }), {
    exit_code: 0,
    repo_full_name: 'acme/app',
    credential_expires_at: EXPIRES,
  })
  t.match(await failure(gitFetch(world), { dir, repo_full_name: 'acme/other' }), {
    name: 'permission_denied',
  })
  t.match(await failure(gitFetch(world), { dir, remote: 'absent' }), { name: 'git_failed' })
  const noRepository = { name: 'git_failed', message: /not a git repo/ }
  t.match(await failure(gitStatus(world), {}), noRepository)
  for (const staged of [false, true])
    t.match(await failure(gitDiff(world), { staged }), noRepository)
  t.strictSame(containing(outside, TOKENS.push), [])
  t.strictSame(lines, [])
})

t.test('a push with a credential for reading is refused', async (t) => {
  const { clone, world } = await given(t, 'read')
  await execute(clone, REPO)
  const command = 'git commit -q --allow-empty -m x && git push origin HEAD:refused'
  t.match(await execute(bash(world), { command, dir: 'app' }), { exit_code: 128, stderr: /403/ })
})

t.test('another host gets no credential, even with the path of a known repository', async (t) => {
  const { world, lines, asked } = await given(t, 'push')
  const evil = await startGitServer(join(folder, 'evil'))
  t.teardown(() => evil.close())
  await evil.add('acme/app', TOKENS)
  const command = `git clone -q ${evil.url}/acme/app.git stolen`
  t.match(await execute(bash(world), { command }), { exit_code: 128, stderr: /on another host/ })
  t.strictSame(asked, ['push acme/app'])
  t.ok(evil.requests.length > 0)
  t.ok(evil.requests.every(({ username, status }) => username === undefined && status === 401))
  t.match(lines, [/no credential for .* on another host/])
  const undeclared = `git clone -q ${server.url}/acme/other.git other`
  t.match(await execute(bash(world), { command: undeclared }), { stderr: /permission_denied/ })
})

t.test('the socket for credentials is in a private folder, however long paths are', async (t) => {
  const before = process.env['TMPDIR']
  t.teardown(() => {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
  })
  process.env['TMPDIR'] = t.testdir({ ['a'.repeat(120)]: {} })
  process.env['TMPDIR'] += `/${'a'.repeat(120)}`
  const start = () =>
    CredentialRelay.start(
      () => Promise.reject(new Error('not asked')),
      () => {},
    )
  const relays = [await start(), await start()]
  for (const relay of relays) {
    const folder = dirname(relay.config)
    t.ok(existsSync(join(folder, 'socket')))
    t.equal(statSync(folder).mode & 0o777, 0o700)
    relay.close()
    t.notOk(existsSync(folder))
  }
})

t.test('a token that a command prints is removed from its output', async (t) => {
  const { clone, world } = await given(t, 'push')
  await execute(clone, REPO)
  world.secrets.add(TOKENS.push)
  const command = `printf 'protocol=http\\nhost=${host}\\npath=acme/app.git\\n' | git credential fill`
  const { stdout } = await execute(bash(world), { command })
  t.match(stdout, /username=x-access-token\npassword=\[redacted\]\n/)
})
