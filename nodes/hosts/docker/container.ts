/**
 * The containers and volumes of an environment, as the engine's API describes them. Each
 * environment has one volume, which keeps its files, and at most one container, whose process is
 * the worker. Labels say to which environment of which installation they belong.
 *
 * Invariants:
 * C1. The process has no capabilities and cannot gain any; the system in its image is read-only.
 * C2. The first process reaps all others, and they end with it.
 */
import type { HostTask } from '../../../protocol/environments/commands.ts'
import type { EnvironmentLimits } from '../../config/environments.ts'
import type { WorkerLaunch } from '../provider.ts'
import type { WorkerProgram } from './program.ts'

/** Names of labels. `operation` marks the container that prepares a volume. */
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
  /** Network mode; absent: the default of the engine. */
  readonly network?: string
  /** Id that differs between installations on one engine. */
  readonly installation: string
  readonly limits: EnvironmentLimits
  readonly program: WorkerProgram
}

/** The name of the volume and of the container of an environment. */
export const nameOf = (environment_id: string): string => `baton-${environment_id}`
/** The labels of everything of an environment. */
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
/** Where the volume is; the workspace, the logs and the home of the user are folders in it. */
const ROOT = '/environment'
export const folders = {
  workspace: `${ROOT}/workspace`,
  logs: `${ROOT}/logs`,
  home: `${ROOT}/home`,
} as const
/** Bytes of temporary files. They count as memory. */
const TEMPORARY_BYTES = 256 * 1024 * 1024
/**
 * Limits of open files, and of the processes of the user in all containers. Some engines may not
 * set their own defaults, which exceed those of the machine.
 */
const OPEN_FILES = 16_384
const USER_PROCESSES = 32_768
/** The size at which the engine begins a new file of output. */
const OUTPUT = { 'max-size': '5m', 'max-file': '1' } as const

/**
 * The first process. It waits for the worker and for every process that the worker leaves behind,
 * and ends with the exit code of the worker.
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

/** Prepares the volume, and checks the image. Its output is shown to people. */
const prepare = (needs: readonly string[]): string => `for name in ${needs.join(' ')}; do
  command -v "$name" >/dev/null || { echo "it has no program $name" >&2; exit 1; }
done
mkdir -p ${Object.values(folders).join(' ')} &&
  chown ${USER} ${ROOT} ${Object.values(folders).join(' ')}`

/** What both kinds of containers have. */
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
        { Name: 'nofile', Soft: OPEN_FILES, Hard: OPEN_FILES },
        { Name: 'nproc', Soft: USER_PROCESSES, Hard: USER_PROCESSES },
      ],
      Tmpfs: { '/tmp': `rw,nosuid,nodev,exec,size=${TEMPORARY_BYTES},mode=1777` },
      LogConfig: { Type: 'json-file', Config: OUTPUT },
      Mounts: [{ Type: 'volume', Source: nameOf(id), Target: ROOT }],
      ...host,
    },
  }
}

/** The container that prepares the volume of an environment. It has no network. */
export const preparation = (task: HostTask, settings: ContainerSettings): object =>
  container(settings, task.environment_id, labelsOf(task, settings), {
    Entrypoint: ['/bin/bash', '-c', prepare(settings.program.needs)],
    Cmd: [],
    User: '0:0',
    WorkingDir: '/',
    host: { NetworkMode: 'none', CapAdd: ['CHOWN', 'DAC_OVERRIDE'] },
  })

/** The container of a worker. */
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
