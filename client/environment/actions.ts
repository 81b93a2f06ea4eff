/** The actions of an environment's worker: environment actions and stock actions. */
import {
  type EnvironmentActionName,
  earlierActionNames,
} from '../../protocol/environments/actions.ts'
import { stockActions } from '../actions.ts'
import type { Transport } from '../transport.ts'
import type { Action } from '../worker/options.ts'
import { downloadArtifact, publishArtifact } from './actions/artifacts.ts'
import { bash } from './actions/bash.ts'
import { deleteFile, readFile, writeFile } from './actions/files.ts'
import { listFiles } from './actions/list.ts'
import { tailLog } from './actions/logs.ts'
import type { Fence } from './fence.ts'
import { gitClone } from './git/clone.ts'
import { type GitWorld, gitDiff, gitFetch, gitStatus } from './git/git.ts'

export interface ActionsWorld extends GitWorld {
  readonly transport: Transport
  readonly fence: Fence
  readonly logs: string | undefined
}
/**
 * Returns the actions by name, each guarded by the fence.
 * @param names limits the actions to these names. Unknown names are ignored.
 */
export function environmentWorkerActions(
  world: ActionsWorld,
  names?: readonly string[],
): Readonly<Record<string, Action>> {
  const { workspace, transport, fence, logs, secrets } = world
  const own: Readonly<Record<EnvironmentActionName, Action>> = {
    'environment.bash': bash(world),
    'environment.files.read': readFile(workspace),
    'environment.files.write': writeFile(workspace),
    'environment.files.list': listFiles(workspace),
    'environment.files.delete': deleteFile(workspace),
    'environment.git.clone': gitClone(world),
    'environment.git.fetch': gitFetch(world),
    'environment.git.status': gitStatus(world),
    'environment.git.diff': gitDiff(world),
    'environment.artifact.publish': publishArtifact(workspace),
    'environment.artifact.download': downloadArtifact(workspace, transport),
    'environment.logs.tail': tailLog(logs, secrets),
  }
  const renamed = Object.entries(earlierActionNames).map(
    ([alias, name]) => [alias, own[name]] as const,
  )
  const all = [...Object.entries({ ...stockActions, ...own }), ...renamed]
  return Object.fromEntries(
    all
      .filter(([name]) => !names || names.includes(name))
      .map(([name, action]) => [name, fence.guard(action)]),
  )
}
