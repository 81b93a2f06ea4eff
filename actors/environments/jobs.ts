/** Jobs that are pinned to an environment: their arrival and their end. */
import type { EnvironmentCommands, JobEnvironment } from '../../protocol/environments/commands.ts'
import type { EnvironmentEvent } from '../../protocol/environments/events.ts'
import type { EnvironmentRepository } from '../../protocol/environments/schema.ts'
import type { Cause, Decision } from '../actor.ts'
import { advance } from './advance.ts'
import { createBound } from './creation.ts'
import { change, type EnvironmentSettings, emit, finish, newDraft } from './draft.ts'
import { apply, type EnvironmentState } from './state.ts'
import { UNAVAILABLE } from './transitions.ts'

type Use = EnvironmentCommands['environment.use']['input']

/**
 * Adds the repositories that a job declares. Once a job has declared a repository with the right to
 * push, the environment keeps that right.
 */
function merged(
  have: readonly EnvironmentRepository[],
  more: readonly EnvironmentRepository[],
): EnvironmentRepository[] {
  const key = ({ provider = 'github', full_name }: EnvironmentRepository) =>
    `${provider}/${full_name}`
  const all = new Map(have.map((one) => [key(one), one]))
  for (const one of more) {
    const before = all.get(key(one))
    all.set(key(one), before ? { ...before, push: before.push || one.push } : one)
  }
  return [...all.values()]
}

/**
 * Returns the decision that refuses a job because its environment does not exist or is destroyed.
 * The actor stores nothing about the job.
 */
const refusedUse = ({ job_id, queue }: Use, error_type: string, error_message: string) => ({
  events: [
    {
      type: 'environment.jobs_refused' as const,
      jobs: [{ job_id, queue }],
      error_type,
      error_message,
    },
  ],
  reply: undefined,
})

/**
 * Records a new job that is pinned to the environment. If the environment does not exist and the
 * job has a binding, the environment is created.
 */
export function use(
  state: EnvironmentState,
  input: Use,
  cause: Cause,
  settings: EnvironmentSettings,
): Decision<EnvironmentEvent, undefined> {
  const { job_id, queue, holder, binding, passive } = input
  if (state?.jobs[job_id]) return { events: [], reply: undefined }
  const isGone = state === null || state.record.status === 'destroyed'
  if (isGone && !binding)
    return state === null
      ? refusedUse(input, 'not_found', `There is no environment ${cause.self.id}.`)
      : refusedUse(input, UNAVAILABLE, 'The environment is destroyed.')
  const birth = isGone && binding ? createBound(binding, settings, cause) : undefined
  const before = birth ? apply(state, birth, cause.at) : state
  if (!before) throw new Error('a job uses an environment that was not created')
  const draft = newDraft(before, cause, settings)
  if (birth) draft.events.push(birth)
  else declare(draft, binding)
  emit(draft, {
    type: 'environment.job_added',
    job_id,
    job: { queue, holder, ...(passive && { passive: true }) },
  })
  advance(draft)
  return finish(draft, undefined)
}
function declare(draft: ReturnType<typeof newDraft>, binding: JobEnvironment['binding']): void {
  const have = draft.state.record.repositories ?? []
  const repositories = merged(have, binding?.repositories ?? [])
  if (JSON.stringify(have) !== JSON.stringify(repositories)) change(draft, { repositories })
}

/** Records the end of a job. */
export function done(
  state: EnvironmentState,
  { job_id }: EnvironmentCommands['environment.done']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decision<EnvironmentEvent, undefined> {
  if (!state?.jobs[job_id]) return { events: [], reply: undefined }
  const draft = newDraft(state, cause, settings)
  emit(draft, { type: 'environment.job_ended', job_id })
  advance(draft)
  return finish(draft, undefined)
}
