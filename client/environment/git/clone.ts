/**
 * The action that clones a repository.
 *
 * Invariants:
 * C1. A failed clone leaves its folder empty.
 * C2. With `commit` or `fetch_ref`, exactly that target is checked out.
 */
import { readdir, rm } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Action } from '../../worker/options.ts'
import { withRefusals } from '../actions/artifacts.ts'
import { ActionFault, optionalText, wholeNumber } from '../fault.ts'
import type { Ended } from '../process/run.ts'
import {
  type GitContext,
  type GitWorld,
  gitArgument,
  repositoryOf,
  requireSuccess,
  runGit,
} from './git.ts'
import { remoteUrl } from './remote.ts'

/** Maximum number of attempts to clone, and the pause between two attempts in milliseconds. */
const attempts = { maximum: 3, pause: 2000 } as const
/** Patterns of error messages for failures that a retry would not fix. */
const permanent: readonly RegExp[] = [
  /couldn't find remote ref|Remote branch .* not found|invalid refspec/i,
  /not our ref|unadvertised object|unknown revision/i,
  /Authentication failed|could not read Username|told us to quit/i,
]

interface Target {
  readonly url: string
  readonly branch?: string
  readonly depth?: number
  readonly commit?: string
  readonly fetch_ref?: string
}

/** Clones a repository into a folder that is empty or does not exist. */
export const gitClone =
  (world: GitWorld, pause = wait): Action =>
  async (parameters, context) => {
    const repo_full_name = repositoryOf(parameters)
    if (repo_full_name === undefined)
      throw new ActionFault('invalid_parameters', 'repo_full_name is missing')
    const branch = gitArgument(parameters, 'branch')
    const fetch_ref = gitArgument(parameters, 'fetch_ref')
    const depth = wholeNumber(parameters, 'depth', { standard: 0, maximum: 1_000_000 })
    const commit = optionalText(parameters, 'commit')
    if (commit !== undefined && !/^[0-9a-f]{7,64}$/i.test(commit))
      throw new ActionFault('invalid_parameters', 'commit must be 7 to 64 hexadecimal digits')
    const dest = optionalText(parameters, 'dest') ?? basename(repo_full_name)
    const credential = await withRefusals(() => world.ask(repo_full_name, 'clone'))
    const target: Target = {
      url: remoteUrl(credential, repo_full_name),
      ...(branch !== undefined && { branch }),
      ...(depth > 0 && { depth }),
      ...(commit !== undefined && { commit }),
      ...(fetch_ref !== undefined && { fetch_ref }),
    }
    const path = await emptyFolder(world, dest)
    const ended = await repeated(world, target, path, context, pause)
    const known = await facts(world, path, context)
    const helperError = world.relay.refusalOf(target.url)
    return {
      repo_full_name,
      dir: world.workspace.shown(path),
      path,
      remote_url: target.url,
      ...(branch !== undefined && { requested_branch: branch }),
      ...(commit !== undefined && { requested_commit: commit }),
      ...(fetch_ref !== undefined && { fetch_ref }),
      ...(depth > 0 && { depth }),
      ...known,
      ...ended,
      credential_expires_at: credential.expires_at,
      ...(helperError !== undefined && { git_credential_helper_error: helperError }),
    }
  }
/**
 * Creates the folder of a clone and returns its real path.
 * @throws ActionFault if the folder is not empty.
 */
async function emptyFolder({ workspace }: GitWorld, dest: string): Promise<string> {
  const path = await workspace.createFolder(dest)
  if ((await readdir(path)).length > 0)
    throw new ActionFault('not_empty', `${dest} exists and is not empty`)
  return path
}

async function repeated(
  world: GitWorld,
  target: Target,
  path: string,
  context: GitContext,
  pause: typeof wait,
): Promise<Ended> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await cloneOnce(world, target, path, context)
    } catch (error) {
      await empty(path)
      const { name, message } = error as Error
      const again =
        name === 'git_failed' &&
        !permanent.some((one) => one.test(message)) &&
        attempt < attempts.maximum
      if (!again) {
        const refusal = world.relay.refusalOf(target.url)
        throw refusal === undefined || name !== 'git_failed'
          ? error
          : new ActionFault(name, `${message}\n${refusal}`)
      }
      context.log(`attempt ${attempt} to clone failed: ${message.slice(0, 200)}`)
      await pause(attempts.pause, context.signal)
    }
  }
}
/** Waits for `ms` milliseconds. Rejects if the job is cancelled. */
function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      failed(signal.reason)
    })
  })
}
const empty = async (path: string): Promise<void> => {
  for (const name of await readdir(path).catch(() => []))
    await rm(`${path}/${name}`, { recursive: true, force: true })
}

async function cloneOnce(
  world: GitWorld,
  target: Target,
  cwd: string,
  { signal }: GitContext,
): Promise<Ended> {
  const { url, branch, depth, commit, fetch_ref } = target
  const options = { cwd, signal, protocols: new URL(url).protocol.slice(0, -1) }
  const git = async (...args: string[]) =>
    requireSuccess(await runGit(world, args, options), `git ${args[0]}`)
  const shallow = depth === undefined ? [] : [`--depth=${depth}`]
  if (commit === undefined && fetch_ref === undefined)
    return git(
      'clone',
      ...shallow,
      ...(branch === undefined ? [] : [`--branch=${branch}`]),
      '--',
      url,
      '.',
    )
  await git('init', '--quiet')
  await git('remote', 'add', 'origin', url)
  const fetched = await fetchTarget(git, target, shallow)
  const revision = commit === undefined ? 'FETCH_HEAD' : `${commit}^{commit}`
  const how = branch === undefined ? ['--detach'] : ['-B', branch]
  const checkedOut = await git('checkout', '--quiet', ...how, revision, '--')
  return {
    stdout: fetched.stdout + checkedOut.stdout,
    stderr: fetched.stderr + checkedOut.stderr,
    exit_code: 0,
  }
}
/**
 * Whether a commit id is complete. A commit can be fetched by its complete id, whereas an
 * abbreviated id must be resolved among the commits that have been fetched.
 */
const isFullId = (commit: string): boolean => commit.length === 40 || commit.length === 64

async function fetchTarget(
  git: (...args: string[]) => Promise<Ended>,
  { commit, fetch_ref }: Target,
  shallow: readonly string[],
): Promise<Ended> {
  if (commit !== undefined && isFullId(commit)) {
    try {
      return await git('fetch', ...shallow, '--', 'origin', commit)
    } catch (error) {
      // Some hosts do not allow fetching a commit by its id, so `fetch_ref` is fetched instead.
      if (fetch_ref === undefined) throw error
    }
  }
  if (fetch_ref === undefined) return git('fetch', '--', 'origin')
  return git('fetch', ...(commit === undefined ? shallow : []), '--', 'origin', fetch_ref)
}

/** Returns the branch and commit that are checked out, and whether the clone is shallow. */
async function facts(world: GitWorld, cwd: string, { signal }: GitContext) {
  const read = async (...args: string[]) =>
    (await runGit(world, args, { cwd, signal })).stdout.trim()
  const head = await read('rev-parse', '--verify', '--quiet', 'HEAD')
  const branch = await read('symbolic-ref', '--short', '--quiet', 'HEAD')
  const shallow = (await read('rev-parse', '--is-shallow-repository')) === 'true'
  return {
    ...(branch !== '' && { branch }),
    commit: head,
    head_sha: head,
    ...(shallow && { shallow }),
  }
}
