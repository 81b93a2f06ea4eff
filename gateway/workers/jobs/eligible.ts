/**
 * Which jobs a worker may take, and which offers it must therefore listen to. Listening may be wider than taking (a
 * subject cannot say everything a filter says); taking is always decided by `eligible`.
 */
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { offerCapability } from '../../../protocol/subjects.ts'
import type { Filters } from '../../../protocol/workers/socket.ts'

/** A filter of offers; an absent member means any. */
export interface Interest {
  readonly queue?: string
  readonly capability?: string
}
/** Filters prepared for matching. An absent member means that the worker listed none. */
export interface Wants {
  readonly filters: Filters
  readonly queues?: ReadonlySet<string>
  readonly actions?: ReadonlySet<string>
  readonly models?: ReadonlySet<string>
  readonly interests: readonly Interest[]
}
type Matched = Pick<JobHeader, 'kind' | 'executor_kind'> & {
  readonly action_name?: string
  readonly provider?: string
  readonly model?: string
  readonly environment_id?: string
}

/** Subscriptions of one filter beyond which queues, then capabilities, are widened to any. */
const MOST_INTERESTS = 256

const pair = (provider = '', model = ''): string => `${provider}\u0000${model}`

/** Prepare filters for matching. Empty lists mean the same as absent ones. */
export function wantsOf(filters: Filters): Wants {
  const { queues = [], action_names = [], models = [] } = filters
  return {
    filters,
    ...(queues.length > 0 && { queues: new Set(queues) }),
    ...(action_names.length > 0 && { actions: new Set(action_names) }),
    ...(models.length > 0 && {
      models: new Set(models.map(({ provider, model }) => pair(provider, model))),
    }),
    interests: interestsOf(filters),
  }
}

/** Different filters that are remembered. */
const REMEMBERED = 1000

/** `wantsOf` that gives the same object for the same filters, as long as there are not too many different ones. */
export function sharedWants(): (filters: Filters) => Wants {
  const known = new Map<string, Wants>()
  return (filters) => {
    const key = JSON.stringify([
      filters.queues,
      filters.action_names,
      filters.models,
      filters.environment_id,
    ])
    const same = known.get(key)
    if (same) return same
    const made = wantsOf(filters)
    if (known.size >= REMEMBERED) known.clear()
    known.set(key, made)
    return made
  }
}

/** The filters of one claim: members it names replace the registered ones. */
export const narrowed = (registered: Filters, claim: Filters): Filters => ({
  ...registered,
  ...(claim.queues && { queues: claim.queues }),
  ...(claim.action_names && { action_names: claim.action_names }),
  ...(claim.models && { models: claim.models }),
})

/**
 * Whether a job of this queue may go to a worker that wants this: only work for external workers; a pinned job only to
 * its environment; a model call only where its exact model is listed, whatever the queues; an action where it is listed,
 * or where neither actions nor models are.
 */
export function eligible(job: Matched, queue: string, wants: Wants): boolean {
  if (job.executor_kind !== 'customer_worker') return false
  if (job.environment_id && job.environment_id !== wants.filters.environment_id) return false
  if (job.kind === 'llm_generation')
    return wants.models?.has(pair(job.provider, job.model)) ?? false
  if (wants.queues && !wants.queues.has(queue)) return false
  return wants.actions ? wants.actions.has(job.action_name ?? '') : !wants.models
}

function interestsOf({
  queues = [],
  action_names = [],
  models = [],
  environment_id,
}: Filters): Interest[] {
  const pinned = environment_id ? [undefined, environment_id] : [undefined]
  const capabilities = (jobs: readonly Omit<Matched, 'executor_kind'>[]): string[] =>
    jobs.flatMap((job) =>
      pinned.map((environment) =>
        offerCapability({ ...job, ...(environment && { environment_id: environment }) }),
      ),
    )
  const actions: (string | undefined)[] =
    action_names.length > 0
      ? capabilities(action_names.map((action_name) => ({ kind: 'action_execution', action_name })))
      : models.length > 0
        ? []
        : [undefined]
  const from: (string | undefined)[] =
    queues.length === 0 || queues.length * actions.length > MOST_INTERESTS
      ? [undefined]
      : [...queues]
  const all = [
    ...from.flatMap((queue) =>
      actions.map((capability) => ({
        ...(queue !== undefined && { queue }),
        ...(capability !== undefined && { capability }),
      })),
    ),
    ...capabilities(
      models.map(({ provider, model }) => ({ kind: 'llm_generation', provider, model })),
    ).map((capability) => ({ capability })),
  ]
  return all.length > MOST_INTERESTS ? [{}] : all
}
