/**
 * Determines how the worker of an environment is started: its command and the variables that it
 * reads, including its credential. The names of the variables begin with the brand of the
 * installation.
 */

import type { HostTask } from '../../protocol/environments/commands.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { WorkerLaunch } from './provider.ts'

export interface LaunchSettings {
  /** Brand in any letter case. */
  readonly brand: string
  /** URL at which the host reaches a gateway. */
  readonly gateway_url: string
  /** Minimum level of the log lines of workers. */
  readonly log_level: string
}

/** The facts about a project that a host needs to start a worker. */
export interface ProjectFacts {
  readonly handle: string
  /** Addresses (`name:port`) of the project's own repository hosts, by name. */
  readonly repository_hosts: Readonly<Record<string, string>>
}

/**
 * Default keep-warm times by lifetime. An environment of a run serves only that run, so its worker
 * does not end when it is idle.
 */
const KEEP_WARM = { run: 'forever', lease: '5m', explicit: '5m' } as const

/**
 * Addresses (`name:port`) of the repository hosts that every installation supports, by the
 * `provider` of a declared repository.
 */
const REPOSITORY_HOSTS: Readonly<Record<string, string>> = {
  github: 'github.com:443',
  gitlab: 'gitlab.com:443',
}

/**
 * Returns the launch parameters of a task's worker.
 * @param credential the text that authenticates the worker.
 * @param project the project of the environment.
 */
export function launchOf(
  task: HostTask,
  credential: string,
  project: ProjectFacts,
  { brand, gateway_url, log_level }: LaunchSettings,
): WorkerLaunch {
  const name = (rest: string) => `${brand.toUpperCase()}_${rest}`
  const wanted = task.worker
  const queues = (wanted?.queues ?? []).join(',')
  const values = {
    API_KEY: credential,
    PROJECT: project.handle,
    LOG_LEVEL: log_level,
    QUEUES: queues,
    WORKER_QUEUES: queues,
    // An empty list means all actions of the worker.
    WORKER_ACTION_NAMES: '',
    WORKER_ENVIRONMENT_ID: task.environment_id,
    WORKER_KEEP_WARM: wanted?.keep_warm ?? KEEP_WARM[task.lifetime ?? 'explicit'],
    WORKER_KEEP_WARM_REQUIRED: String(wanted?.keep_warm_required ?? false),
    ...(wanted?.concurrency !== undefined && { WORKER_CONCURRENCY: String(wanted.concurrency) }),
  }
  const hosts = task.repositories.flatMap(
    ({ provider = 'github' }) =>
      getOwn(project.repository_hosts, provider) ?? getOwn(REPOSITORY_HOSTS, provider) ?? [],
  )
  return {
    generation: wanted?.generation ?? 0,
    ...(wanted?.command && { command: wanted.command }),
    variables: Object.fromEntries(
      Object.entries(values).map(([rest, value]) => [name(rest), value]),
    ),
    gateway_url,
    url_variable: name('API_URL'),
    workspace_variable: name('RUNTIME_WORKSPACE'),
    log_variable: name('WORKER_LOG_DIR'),
    allowed_hosts: [...new Set(hosts)],
  }
}
