/** Workspaces in temporary folders, and the execution of environment actions in them. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { commandVariables } from '../../../client/environment/command-variables.ts'
import type { GitWorld } from '../../../client/environment/git/git.ts'
import { CredentialRelay } from '../../../client/environment/git/relay.ts'
import type { AskCredential } from '../../../client/environment/git/remote.ts'
import { Secrets } from '../../../client/environment/secrets.ts'
import { Workspace } from '../../../client/environment/workspace.ts'
import type { Action, ActionContext } from '../../../client/worker/options.ts'
import { jobOf, logTo, notPublished } from '../worker/stand.ts'

export interface TestWorkspace extends GitWorld {
  /** The folder around the workspace. Its other content must never be reached. */
  readonly outside: string
  readonly inside: string
  readonly lines: string[]
}
/** Creates a workspace that is removed after the test. */
export async function workspaceOf(
  t: Pick<Test, 'teardown'>,
  ask: AskCredential = () => Promise.reject(new Error('there are no repositories')),
): Promise<TestWorkspace> {
  const outside = mkdtempSync(join(tmpdir(), 'environment-'))
  const inside = join(outside, 'workspace')
  mkdirSync(inside)
  const lines: string[] = []
  const relay = await CredentialRelay.start(ask, (line) => lines.push(line))
  t.teardown(() => {
    relay.close()
    rmSync(outside, { recursive: true, force: true })
  })
  const workspace = await Workspace.open(inside)
  const given = {
    PATH: process.env['PATH'],
    HOME: outside,
    ACME_API_KEY: 'the-key-of-the-worker',
    ACME_WORKER_KEEP_WARM: 'forever',
    OTHER_SECRET: 'other',
  }
  const settings = { brand: 'ACME', workspace: workspace.root, passed: [] }
  const variables = commandVariables(given, settings, relay.config)
  return { outside, inside, lines, workspace, variables, secrets: new Secrets(), relay, ask }
}

const contextOf = (more: Partial<ActionContext> = {}): ActionContext => ({
  signal: new AbortController().signal,
  job: jobOf('x'),
  log: logTo(),
  publish: notPublished,
  ...more,
})
export const execute = async (
  action: Action,
  parameters: Record<string, unknown> = {},
  more: Partial<ActionContext> = {},
): Promise<Record<string, never>> =>
  (await action(parameters, contextOf(more))) as Record<string, never>
/** Executes an action that must fail, and returns the type and the message of the failure. */
export const failure = async (
  action: Action,
  parameters: Record<string, unknown> = {},
  more: Partial<ActionContext> = {},
): Promise<{ name: string; message: string }> => {
  try {
    await action(parameters, contextOf(more))
  } catch (error) {
    const { name, message } = error as Error
    return { name, message }
  }
  throw new Error('the action did not fail')
}
