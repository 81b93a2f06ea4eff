/** Which jobs the service does itself, according to this node's directory. */
import {
  type ActionSketch,
  actionNamed,
  REPEATABLE_LOSSES,
} from '../../protocol/access/directory.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Directory } from '../directory.ts'
import { andThen, type MaybePromise } from '../maybe-promise.ts'
import type { Served, Serves } from './edge.ts'

/** The action of this name; undefined when it is not defined. */
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

const SERVICE: Served = { byService: true }
const WORKERS: Served = { byService: false }
const REPEATED: Served = { byService: false, losses: REPEATABLE_LOSSES }
/**
 * The service does HTTP actions itself, and jobs that are not meant for workers. Jobs pinned to an
 * environment go to the workers there.
 */
export const servedBy =
  (directory: Directory): Serves =>
  (project, { kind, executor_kind, action_name, environment_id, workers_only }) => {
    if (executor_kind === 'server_worker') return SERVICE
    if (kind !== 'action_execution' || action_name === undefined) return WORKERS
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
