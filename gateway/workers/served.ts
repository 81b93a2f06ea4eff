/** Determines from this node's directory which jobs the service executes itself. */
import {
  type ActionSketch,
  actionNamed,
  REPEATABLE_LOSSES,
} from '../../protocol/access/directory.ts'
import { isTableAction } from '../../protocol/actions/builtin.ts'
import {
  type EnvironmentAction,
  type EnvironmentActionName,
  environmentActions,
  isEnvironmentAction,
} from '../../protocol/environments/actions.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Directory } from '../directory.ts'
import { andThen, type MaybePromise } from '../maybe-promise.ts'
import type { Served, Serves } from './edge.ts'

/**
 * Returns the facts about the action with this name from this node's directory; undefined when
 * there is no such action.
 */
export const knownAction = (
  directory: Directory,
  project: string,
  name: string,
): MaybePromise<ActionSketch | undefined | Refusal> =>
  andThen(directory.project(project), (home) =>
    isRefusal(home)
      ? home
      : andThen(directory.organization(), (known) =>
          isRefusal(known) ? known : actionNamed(home, known, name),
        ),
  )

const readsOnly = (name: EnvironmentActionName): boolean =>
  (environmentActions[name] as EnvironmentAction).annotations.read_only === true

/** The service itself executes the job. */
const SERVICE: Served = { byService: true }
/** Workers execute the job. */
const WORKERS: Served = { byService: false }
/** Workers execute the job. It survives more lost leases, because it can be repeated safely. */
const REPEATED: Served = { byService: false, losses: REPEATABLE_LOSSES }
/**
 * Creates the function that determines which jobs the service executes itself. These are the jobs
 * of the executor kind `server_worker`, built-in actions on tables, and HTTP actions that are
 * neither pinned to an environment nor restricted to workers.
 * @param brand lower-case brand.
 */
export const servedBy =
  (directory: Directory, brand: string): Serves =>
  (project, { kind, executor_kind, action_name, environment_id, workers_only }) => {
    if (executor_kind === 'server_worker') return SERVICE
    if (kind !== 'action_execution' || action_name === undefined) return WORKERS
    if (isTableAction(brand, action_name)) return SERVICE
    if (isEnvironmentAction(action_name)) return readsOnly(action_name) ? REPEATED : WORKERS
    return andThen(knownAction(directory, project, action_name), (action) =>
      action !== undefined && isRefusal(action)
        ? action
        : action?.kind === 'http' && environment_id === undefined && !workers_only
          ? SERVICE
          : action?.repeatable
            ? REPEATED
            : WORKERS,
    )
  }
