/**
 * Describes the containers of an environment for the engine's API. Each environment has one volume
 * for its files, and at most one worker, which runs in a container. Labels identify the
 * installation and the environment of each volume and container.
 *
 * Invariants:
 * C1. The worker has no capabilities and cannot gain any. The file system of its image is
 *     read-only.
 * C2. The first process of a worker's container reaps all other processes. They end when the first
 *     process ends.
 */
import type { HostTask } from '../../../protocol/environments/commands.ts'
import type { EnvironmentLimits } from '../../config/environments.ts'
import type { WorkerLaunch } from '../provider.ts'
import type { WorkerProgram } from './program.ts'

/** Label names. Only worker containers have `generation`, the number of the worker. */
export const label = {
  installation: 'baton.installation',
  project: 'baton.project',
  environment: 'baton.environment',
  generation: 'baton.generation',
  place: 'baton.place',
} as const
export type Labels = Readonly<Record<string, string>>

export interface ContainerSettings {
  readonly image: string
  /** Network mode. The default is that of the engine. */
  readonly network?: string
  /**
   * Id of the installation. Labels contain it, because several installations may use one engine.
   */
  readonly installation: string
  readonly limits: EnvironmentLimits
  readonly program: WorkerProgram
}

/**
 * Returns the name of an environment's volume, which is also the name of its worker's container.
 */
export const nameOf = (environment_id: string): string => `baton-${environment_id}`
/** Returns the labels of the volume and the containers of an environment. */
export const labelsOf = (
  { project, environment_id }: Pick<HostTask, 'project' | 'environment_id'>,
  { installation }: Pick<ContainerSettings, 'installation'>,
): Labels => ({
  [label.installation]: installation,
  [label.project]: project,
  [label.environment]: environment_id,
})

/** The user and group of the worker. */
const USER = '1000:1000'
/**
 * Path of the volume in containers. The volume contains one folder each for the workspace, the logs
 * and the home directory.
 */
const ROOT = '/environment'
export const folders = {
  workspace: `${ROOT}/workspace`,
  logs: `${ROOT}/logs`,
  home: `${ROOT}/home`,
} as const
/** Maximum total size of the temporary files in bytes. The files count as memory. */
const TEMPORARY_BYTES = 256 * 1024 * 1024
/**
 * Maximum number of open files. Set explicitly, because the defaults of some engines exceed the
 * limits that these engines are permitted to set.
 */
const MAX_OPEN_FILES = 16_384
/**
 * Maximum number of processes of the user across all containers. Set explicitly for the same reason
 * as `MAX_OPEN_FILES`.
 */
const MAX_USER_PROCESSES = 32_768
/** Log settings: the engine keeps the output in one file, and replaces the file at this size. */
const OUTPUT = { 'max-size': '5m', 'max-file': '1' } as const

/**
 * The script of the first process. It starts the worker, forwards stop signals to the worker, reaps
 * orphaned processes, and ends with the exit code of the worker.
 */
const FIRST_PROCESS = `"$@" &
worker=$!
trap 'kill -TERM "$worker" 2>/dev/null' TERM INT
wait "$worker"
code=$?
while kill -0 "$worker" 2>/dev/null; do
  wait "$worker"
  code=$?
done
exit "$code"`

/** Returns the script that checks the image and prepares the volume. Users see its output. */
const prepare = (needs: readonly string[]): string => `for name in ${needs.join(' ')}; do
  command -v "$name" >/dev/null || { echo "it has no program $name" >&2; exit 1; }
done
mkdir -p ${Object.values(folders).join(' ')} &&
  chown ${USER} ${ROOT} ${Object.values(folders).join(' ')}`

/** Returns the settings of a container: the settings common to all containers, and `more`. */
function container(
  settings: ContainerSettings,
  id: string,
  labels: Labels,
  more: { readonly host?: object } & Readonly<Record<string, unknown>>,
): object {
  const { host, ...rest } = more
  return {
    Image: settings.image,
    Labels: labels,
    ...rest,
    HostConfig: {
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Memory: settings.limits.memory_bytes,
      MemorySwap: settings.limits.memory_bytes,
      NanoCpus: Math.round(settings.limits.cpus * 1e9),
      PidsLimit: settings.limits.processes,
      Ulimits: [
        { Name: 'nofile', Soft: MAX_OPEN_FILES, Hard: MAX_OPEN_FILES },
        { Name: 'nproc', Soft: MAX_USER_PROCESSES, Hard: MAX_USER_PROCESSES },
      ],
      Tmpfs: { '/tmp': `rw,nosuid,nodev,exec,size=${TEMPORARY_BYTES},mode=1777` },
      LogConfig: { Type: 'json-file', Config: OUTPUT },
      Mounts: [{ Type: 'volume', Source: nameOf(id), Target: ROOT }],
      ...host,
    },
  }
}

/**
 * Returns the settings of the container that prepares the volume of an environment. The container
 * has no network.
 */
export const preparationSettings = (task: HostTask, settings: ContainerSettings): object =>
  container(settings, task.environment_id, labelsOf(task, settings), {
    Entrypoint: ['/bin/bash', '-c', prepare(settings.program.needs)],
    Cmd: [],
    User: '0:0',
    WorkingDir: '/',
    host: { NetworkMode: 'none', CapAdd: ['CHOWN', 'DAC_OVERRIDE'] },
  })

/** Returns the settings of a worker's container. */
export function workerContainer(
  task: HostTask,
  launch: WorkerLaunch,
  settings: ContainerSettings,
): object {
  const { program, network } = settings
  const variables: Record<string, string> = {
    HOME: folders.home,
    ...launch.variables,
    [launch.url_variable]: launch.gateway_url,
    [launch.workspace_variable]: folders.workspace,
    [launch.log_variable]: folders.logs,
  }
  return container(
    settings,
    task.environment_id,
    { ...labelsOf(task, settings), [label.generation]: String(launch.generation) },
    {
      Entrypoint: ['/bin/bash', '-c', FIRST_PROCESS, 'baton'],
      Cmd: launch.command ?? program.command,
      Env: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
      User: USER,
      WorkingDir: folders.workspace,
      host: {
        ...(network !== undefined && { NetworkMode: network }),
        Mounts: [
          { Type: 'volume', Source: nameOf(task.environment_id), Target: ROOT },
          ...program.mounts.map(({ source, target }) => ({
            Type: 'bind',
            Source: source,
            Target: target,
            ReadOnly: true,
          })),
        ],
      },
    },
  )
}
