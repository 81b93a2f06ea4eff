/**
 * How the worker of an environment is started: its credential, and the variables that it reads. The
 * names of the variables begin with the brand of the installation.
 */

import type { HostTask } from '../../protocol/environments/commands.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { WorkerLaunch } from './provider.ts'

export interface LaunchSettings {
  /** Brand in any letter case. */
  readonly brand: string
  /** URL of a gateway, as the host reaches it. */
  readonly gateway_url: string
  /** Minimum level of the log lines of workers. */
  readonly log_level: string
}

/** What a host looks up about the project of an environment when it starts a worker. */
export interface ProjectFacts {
  readonly handle: string
  /** Addresses (`name:port`) of the project's own hosts of repositories, by their names. */
  readonly repository_hosts: Readonly<Record<string, string>>
}

/** Keep-warm times by lifetime: an environment of a run serves one run, so its worker stays. */
const KEEP_WARM = { run: 'forever', lease: '5m', explicit: '5m' } as const

/**
 * Addresses (`name:port`) of the hosts of repositories that every installation knows, by the name
 * that a declared repository has as its `provider`.
 */
const REPOSITORY_HOSTS: Readonly<Record<string, string>> = {
  github: 'github.com:443',
  gitlab: 'gitlab.com:443',
}

/**
 * Returns the launch of the worker of a task.
 * @param credential the text with which the worker authenticates; only its hash leaves the host.
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
    // Empty: all actions of the worker.
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
