/** The git server of tests and of the tour, with real git as its client. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startGitServer } from '../../../client/tour/git/server.ts'
import { gitEnv } from '../../support/git-env.ts'

const exec = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'git-server-'))
const server = await startGitServer(join(folder, 'repositories'))
t.teardown(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})
const env = gitEnv(folder)
const git = (at: string, ...args: string[]) => exec('git', ['-C', at, ...args], { env })
const urlOf = (token: string | undefined, name: string) =>
  `${server.url.replace('://', token === undefined ? '://' : `://x:${token}@`)}/${name}.git`
const refused = (...args: Parameters<typeof git>) =>
  git(...args).then(
    () => 'it succeeded',
    ({ stderr }: { stderr: string }) => stderr,
  )

await server.add('acme/app', { read: 'r1', push: 'p1' })
await server.add('acme/lib', { read: 'r2', push: 'p2' })
const work = join(folder, 'work')
await exec('git', ['clone', '--quiet', urlOf('p1', 'acme/app'), work], { env })

t.test('a push with the token for pushing, and a clone with the one for reading', async (t) => {
  // The push request is larger than git's buffer, so it is sent in chunks.
  writeFileSync(join(work, 'file'), Array.from({ length: 200_000 }, (_, n) => n * 7919).join())
  await git(work, 'add', 'file')
  await git(work, 'commit', '--quiet', '-m', 'first')
  await git(work, 'push', '--quiet', 'origin', 'HEAD:main')
  const copy = join(folder, 'copy')
  await exec('git', ['clone', '--quiet', urlOf('r1', 'acme/app'), copy], { env })
  t.equal(readFileSync(join(copy, 'file')).length, readFileSync(join(work, 'file')).length)
  await git(copy, 'commit', '--quiet', '--allow-empty', '-m', 'second')
  t.match(await refused(copy, 'push', 'origin', 'HEAD:main'), /403/)
  t.match(server.requests.at(-1), { service: 'git-receive-pack', status: 403, username: 'x' })
  const { stdout } = await git(copy, 'ls-remote', 'origin')
  const { stdout: head } = await git(work, 'rev-parse', 'HEAD')
  t.ok(stdout.includes(head.trim()), 'the refused push changed nothing')
})

t.test('many branches are fetched with requests that git compresses', async (t) => {
  for (let n = 0; n < 60; n++) {
    await git(work, 'commit', '--quiet', '--allow-empty', '-m', `branch ${n}`)
    await git(work, 'branch', `b${n}`)
  }
  await git(work, 'push', '--quiet', '--all', 'origin')
  const copy = join(folder, 'branches')
  await exec('git', ['clone', '--quiet', '--depth=1', urlOf('r1', 'acme/app'), copy], { env })
  await git(copy, 'fetch', '--quiet', '--unshallow', 'origin', '+refs/heads/*:refs/remotes/o/*')
  const { stdout } = await git(copy, 'branch', '--remotes', '--list', 'o/*')
  t.ok(stdout.split('\n').length > 60)
})

t.test('no token, unknown tokens, tokens of other repositories, other paths', async (t) => {
  for (const token of [undefined, 'r2', 'p2', 'none'])
    t.match(
      await refused(folder, 'ls-remote', urlOf(token, 'acme/app')),
      /Authentication|username/i,
    )
  t.match(await refused(folder, 'ls-remote', urlOf('p1', 'acme/none')), /not found/)
  const statusOf = async (path: string, method = 'GET') =>
    (
      await fetch(`${server.url}${path}`, {
        method,
        headers: { authorization: `Basic ${Buffer.from('x:p1').toString('base64')}` },
      })
    ).status
  for (const path of [
    '/',
    '/acme/app.git/HEAD',
    '/acme/app.git/info/refs',
    '/acme/app.git/info/refs?service=git-upload-archive',
    '/acme/../acme/none.git/info/refs?service=git-upload-pack',
    '/acme%2fapp.git/info/refs?service=git-upload-pack',
    '/acme/app.git/git-upload-pack',
  ])
    t.equal(await statusOf(path), 404, path)
})
