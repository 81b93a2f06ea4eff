/** Runs git for the worker's actions, and defines the actions that use an existing clone. */
import type { Action, ActionContext, Parameters } from '../../worker/options.ts'
import { withRefusals } from '../actions/artifacts.ts'
import { type CommandWorld, outputLimits } from '../actions/bash.ts'
import { ActionFault, flag, optionalText, wholeNumber } from '../fault.ts'
import { type Ended, runProgram } from '../process/run.ts'
import type { CredentialRelay } from './relay.ts'
import {
  type AskCredential,
  isRepositoryName,
  isSameRepository,
  namesOf,
  remoteUrl,
} from './remote.ts'

export interface GitWorld extends CommandWorld {
  readonly relay: CredentialRelay
  readonly ask: AskCredential
}
/** Seconds after which a git operation is killed. */
const TIMEOUT_SECONDS = 3600
/** Maximum number of characters of output in a failure message. */
const MAX_MESSAGE_LENGTH = 2000

/**
 * Runs git.
 * @param protocols the protocols that git may use, separated by colons.
 */
export async function runGit(
  { variables, secrets, relay }: GitWorld,
  args: readonly string[],
  {
    cwd,
    signal,
    max_bytes = outputLimits.standard,
    protocols = 'http:https',
  }: { cwd: string; signal: AbortSignal; max_bytes?: number; protocols?: string },
): Promise<Ended> {
  const options = [
    // The empty value removes the user's helpers, which might store credentials.
    ['credential.helper', ''],
    ['credential.helper', relay.helper],
    ['credential.useHttpPath', 'true'],
    // Git aborts a transfer that is slower than 1000 bytes per second for 60 s.
    ['http.lowSpeedLimit', '1000'],
    ['http.lowSpeedTime', '60'],
  ].flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const { stdout, stderr, exit_code } = await runProgram('git', [...options, ...args], {
    cwd,
    env: { ...variables, LC_ALL: 'C', GIT_ALLOW_PROTOCOL: protocols },
    timeout_seconds: TIMEOUT_SECONDS,
    max_bytes,
    signal,
  })
  return { stdout: secrets.redact(stdout), stderr: secrets.redact(stderr), exit_code }
}
/**
 * Returns the result of a git command that succeeded.
 * @throws ActionFault `git_failed` if the exit code is not 0.
 */
export function requireSuccess(ended: Ended, doing: string): Ended {
  if (ended.exit_code === 0) return ended
  const output = (ended.stderr.trim() || ended.stdout.trim()).slice(-MAX_MESSAGE_LENGTH)
  throw new ActionFault('git_failed', `${doing} failed with ${ended.exit_code}: ${output}`)
}
/**
 * Returns a parameter that is passed to git as an argument; undefined if it is absent or empty.
 * @throws ActionFault if git could interpret the value as an option, or if it contains white space
 * or control characters.
 */
export function gitArgument(parameters: Parameters, name: string): string | undefined {
  const value = optionalText(parameters, name)
  if (value === undefined || value === '') return undefined
  if (value.startsWith('-') || /[\s\x00-\x1f\x7f]/.test(value))
    throw new ActionFault('invalid_parameters', `${name} must not begin with - or contain spaces`)
  return value
}
/**
 * Returns the repository name of a call; undefined if it is absent.
 * @throws ActionFault if the name is invalid.
 */
export function repositoryOf(parameters: Parameters): string | undefined {
  const name = optionalText(parameters, 'repo_full_name')
  if (name !== undefined && !isRepositoryName(name))
    throw new ActionFault('invalid_parameters', 'repo_full_name must be owner/name')
  return name
}

const read =
  (world: GitWorld, doing: string, argsOf: (parameters: Parameters) => readonly string[]): Action =>
  async (parameters, { signal }) => {
    const max_bytes = wholeNumber(parameters, 'max_output_bytes', outputLimits)
    const cwd = await world.workspace.folder(optionalText(parameters, 'dir'))
    return requireSuccess(
      await runGit(world, argsOf(parameters), { cwd, signal, max_bytes }),
      doing,
    )
  }
/** Shows the branch and the changed files. */
export const gitStatus = (world: GitWorld): Action =>
  read(world, 'git status', () => ['status', '--short', '--branch'])
/** Shows the unstaged changes, or the staged ones if `staged` is set. */
export const gitDiff = (world: GitWorld): Action => {
  const diff = read(world, 'git diff', (parameters) => {
    const context = wholeNumber(parameters, 'context', { standard: 3, minimum: 0, maximum: 1000 })
    const staged = flag(parameters, 'staged')
    return ['diff', '--no-color', '--no-ext-diff', `-U${context}`, ...(staged ? ['--staged'] : [])]
  })
  // Outside of a repository, git diff would compare two files, and would fail with its usage.
  const check = read(world, 'git diff', () => ['rev-parse', '--git-dir'])
  return async (parameters, context) => {
    await check(parameters, context)
    return diff(parameters, context)
  }
}

/** Fetches the branches of a clone's remote. */
export const gitFetch =
  (world: GitWorld): Action =>
  async (parameters, context) => {
    const remote = gitArgument(parameters, 'remote') ?? 'origin'
    const cwd = await world.workspace.folder(optionalText(parameters, 'dir'))
    const { signal } = context
    const asked = await runGit(world, ['remote', 'get-url', '--', remote], { cwd, signal })
    const url = requireSuccess(asked, 'git remote get-url').stdout.trim()
    const found = await locate(world, url, repositoryOf(parameters))
    const protocols = new URL(url).protocol.slice(0, -1)
    const ended = await runGit(world, ['fetch', '--', remote], { cwd, signal, protocols })
    return {
      ...requireSuccess(ended, 'git fetch'),
      repo_full_name: found.repo_full_name,
      credential_expires_at: found.expires_at,
    }
  }
/**
 * Finds the repository of a remote and returns a credential for it. The URL may match several
 * names, which are tried in turn.
 */
async function locate(world: GitWorld, url: string, named: string | undefined) {
  let failure: unknown = new ActionFault('invalid_parameters', `${url} names no repository`)
  for (const name of named === undefined ? namesOf(url) : [named]) {
    try {
      const credential = await withRefusals(() => world.ask(name, 'fetch'))
      if (isSameRepository(remoteUrl(credential, name), url)) return credential
      failure = new ActionFault('invalid_parameters', `the remote ${url} is not ${name}`)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}
export type GitContext = Pick<ActionContext, 'signal' | 'log'>
