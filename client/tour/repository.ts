/**
 * A temporary git repository of the tour, with a hook that reports every commit to a loop. The
 * user's git identity, signing settings, templates and hooks are not used.
 */
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const exec = promisify(execFile)
/** The trigger that the hook calls. */
export interface Receiver {
  /** Base addresses of one service. */
  readonly url: readonly string[]
  readonly handle: string
  /** The signing secret: 32 bytes in base64. */
  readonly secret: string
  readonly header: string
}
export interface Repository {
  readonly folder: string
  /**
   * Writes files and commits them.
   * @returns the id of the commit, and the hook's error output if the hook failed.
   */
  commit(
    message: string,
    files: Readonly<Record<string, string>>,
  ): Promise<{ id: string; said: string }>
  remove(): Promise<void>
}

/** Whether git is on the PATH. */
export const hasGit = (): Promise<boolean> =>
  exec('git', ['--version']).then(
    () => true,
    () => false,
  )

/**
 * Runs git in a repository.
 * @throws Error with git's error output.
 */
export async function git(
  folder: string,
  ...args: string[]
): Promise<{ out: string; said: string }> {
  // The paths are explicit, because environment variables could select another repository.
  const here = [`--git-dir=${join(folder, '.git')}`, `--work-tree=${folder}`]
  const { stdout, stderr } = await exec('git', [...own, ...here, ...args], { cwd: folder })
  return { out: stdout.trim(), said: stderr.trim() }
}
const own = [
  'user.name=Baton tour',
  'user.email=tour@example.org',
  'commit.gpgsign=false',
  'core.hooksPath=.git/hooks',
  'init.defaultBranch=main',
  'core.autocrlf=false',
  'color.ui=false',
].flatMap((setting) => ['-c', setting])

/** Creates an empty repository whose commits are reported to a trigger. */
export async function repository(receiver: Receiver): Promise<Repository> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-tour-'))
  await git(folder, 'init', '--quiet', '--template=')
  const hooks = join(folder, '.git', 'hooks')
  await mkdir(hooks, { recursive: true })
  await writeFile(join(hooks, 'receiver.json'), JSON.stringify(receiver), { mode: 0o600 })
  await writeFile(join(hooks, 'tell.mjs'), tell)
  await writeFile(
    join(hooks, 'post-commit'),
    `#!/bin/sh\nexec '${process.execPath.replaceAll("'", `'\\''`)}' .git/hooks/tell.mjs\n`,
  )
  await chmod(join(hooks, 'post-commit'), 0o755)
  return {
    folder,
    commit: async (message, files) => {
      for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
      await git(folder, 'add', '--all')
      // The folder name makes commits unique. Without it, two tours that commit the same files with
      // the same message in the same second would create the same commit id.
      const { said } = await git(
        folder,
        'commit',
        '--quiet',
        '--message',
        message,
        '--message',
        folder,
      )
      return { id: (await git(folder, 'rev-parse', 'HEAD')).out, said }
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/**
 * The script of the hook. It sends one signed request, and retries it after temporary failures
 * until a gateway accepts it, with at most 60 attempts in total. The idempotency key identifies
 * repeats as the same event.
 */
const tell = `import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'

const receiver = readFileSync(new URL('receiver.json', import.meta.url), 'utf8')
const { url, handle, secret, header } = JSON.parse(receiver)
const log = execFileSync('git', ['log', '-1', '--format=%H%x00%an%x00%s'], { encoding: 'utf8' })
const [commit, author, subject] = log.trim().split('\\0')
const body = JSON.stringify({ commit, author, subject })
const signature = createHmac('sha256', Buffer.from(secret, 'base64')).update(body).digest('hex')
const headers = {
  'Content-Type': 'application/json',
  'X-Idempotency-Key': commit,
  [header]: 'sha256=' + signature,
}
let said = ''
for (let n = 0; n < 60; n++) {
  const address = url[n % url.length] + '/v1/triggers/http/' + encodeURIComponent(handle)
  const request = { method: 'POST', headers, body, signal: AbortSignal.timeout(20000) }
  const failed = (error) => ({ status: 0, text: async () => String(error) })
  const answer = await fetch(address, request).catch(failed)
  if (answer.status === 202) process.exit(0)
  said = answer.status + ' ' + await answer.text()
  // 404: a gateway that has just restarted may not have applied the new trigger yet.
  if (answer.status !== 0 && answer.status !== 404 && answer.status !== 429 && answer.status < 500) break
  await new Promise((again) => setTimeout(again, 500))
}
console.error('the trigger was not reached: ' + said)
`
