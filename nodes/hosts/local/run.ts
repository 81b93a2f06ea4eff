/**
 * Runs a worker with its resources: its control group, the relay of its sandbox, its logs and the
 * measurement of its files. All resources are released when the worker has ended.
 */
import { dirname, join } from 'node:path'
import type { Guard } from '../../outbound/guard.ts'
import type { WorkerExit, WorkerLaunch } from '../provider.ts'
import { type Program, stockWorker } from '../stock-worker.ts'
import { MEASURE_MS, watchSize } from './disk.ts'
import type { Control } from './folders.ts'
import { type Isolation, joinCommand, limitCommand, memoryFiles, openFilter } from './isolation.ts'
import type { Groups, ResourceLimits } from './limits.ts'
import { openLog } from './logs.ts'
import { belongingTo, endProcesses, MARKER, type ProcessId } from './processes.ts'
import { openRelay } from './relay.ts'
import { forwards, SANDBOX, sandboxCommand, userCommand, writeConfiguration } from './sandbox.ts'
import { startProcess, type WorkerProcess } from './worker.ts'

/** The settings and resources that all environments of a provider share. */
export interface SharedResources {
  /** Real path of the folder of all environments. */
  readonly root: string
  /** The place of the provider. */
  readonly place: string
  readonly isolation: Isolation
  readonly groups: Groups | undefined
  readonly limits: ResourceLimits
  readonly guard: Guard
  /** The file `inside.mjs`. */
  readonly program: string
  readonly measure_ms?: number
}
export interface RunParts {
  readonly shared: SharedResources
  readonly control: Control
  readonly launch: WorkerLaunch
  readonly signal: AbortSignal
  note(line: string): void
  /** Called when all resources are released. `exit` is undefined if the end was requested. */
  finish(exit: WorkerExit | undefined): Promise<void>
}
export interface Running {
  readonly generation: number
  readonly id: ProcessId
  /** Resolves when the worker has ended, its resources are released, and `finish` has run. */
  readonly finished: Promise<void>
  /**
   * Permits reporting the end of the worker. Called once, after the start was recorded or recording
   * it failed.
   */
  watch(): void
  /** Asks the worker to shut down gracefully. */
  stop(): void
  /** Kills the worker. */
  end(): void
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const MIB = 2 ** 20

/** Returns the variables of a worker. Those of the provider override those of the launch. */
function variablesOf({ shared, control, launch }: RunParts, command: readonly string[]) {
  const sandboxed = shared.isolation.kind === 'sandbox'
  const folder = join(shared.root, control.environment_id)
  const workspace = sandboxed ? SANDBOX.workspace : join(folder, 'workspace')
  const gateway = new URL(launch.gateway_url)
  const proxy = `http://127.0.0.1:${SANDBOX.proxy_port}`
  // Loopback addresses bypass the proxy, so that programs in the sandbox can reach each other. An
  // address at which a repository host listens does not bypass it.
  const direct = ['localhost', '127.0.0.1', '::1'].filter(
    (name) => !launch.allowed_hosts.some((host) => host.startsWith(`${name}:`)),
  )
  const network: Readonly<Record<string, string>> = sandboxed
    ? {
        ...Object.fromEntries(
          ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']
            .flatMap((name) => [name, name.toLowerCase()])
            .map((name) => [name, proxy]),
        ),
        NO_PROXY: direct.join(','),
        no_proxy: direct.join(','),
      }
    : {}
  return {
    ...launch.variables,
    ...network,
    PATH: `${PATH}:${dirname(process.execPath)}`,
    LANG: 'C.UTF-8',
    USER: 'worker',
    LOGNAME: 'worker',
    SHELL: '/bin/bash',
    HOME: sandboxed ? SANDBOX.home : join(folder, 'home'),
    TMPDIR: sandboxed ? '/tmp' : join(folder, 'tmp'),
    [launch.url_variable]: sandboxed
      ? `http://127.0.0.1:${SANDBOX.gateway_port}${gateway.pathname.replace(/\/$/, '')}`
      : launch.gateway_url,
    [launch.workspace_variable]: workspace,
    [launch.log_variable]: sandboxed ? SANDBOX.logs : join(folder, 'worker/logs'),
    [MARKER]: `${shared.place}/${control.environment_id}/${launch.generation}`,
    BATON_INSIDE: JSON.stringify({
      command,
      cwd: workspace,
      forwards: sandboxed ? forwards : [],
    }),
  }
}

function isolationCommand({ shared, control }: RunParts, readable: readonly string[]) {
  const { isolation } = shared
  const { uid } = control
  switch (isolation.kind) {
    case 'sandbox':
      return sandboxCommand({
        tools: isolation.tools,
        folder: join(shared.root, control.environment_id),
        ...(uid !== undefined && { uid }),
        readable: [process.execPath, ...readable],
        hidden: dirname(shared.root),
        program: shared.program,
        memory_files: memoryFiles(shared.limits),
        seccomp: isolation.seccomp !== undefined,
      })
    case 'user':
      return userCommand(isolation.tools, uid ?? 0)
    case 'none':
      return []
  }
}

/** Starts a worker. @throws ProviderFault when the worker cannot be started. */
export async function runWorker(parts: RunParts): Promise<Running> {
  const { shared, control, launch, note } = parts
  const { isolation, limits } = shared
  const folder = join(shared.root, control.environment_id)
  const sandboxed = isolation.kind === 'sandbox'
  const releases: (() => Promise<unknown>)[] = []
  /** Ends the processes of the run, and releases its resources in reverse order of acquisition. */
  const release = async (): Promise<void> => {
    await endProcesses(belongingTo(shared.place, control))
    for (const one of releases.reverse()) await one()
  }
  const custom: Program | undefined = launch.command && { command: launch.command, readable: [] }
  const { command, readable } = custom ?? stockWorker()
  let worker: WorkerProcess
  let oomKills: () => Promise<number> = async () => 0
  try {
    if (sandboxed) {
      await writeConfiguration(folder, control.uid)
      const relay = await openRelay({
        folder: join(folder, 'net'),
        gateway_url: launch.gateway_url,
        allowed_hosts: launch.allowed_hosts.map((host) => host.toLowerCase()),
        guard: shared.guard,
        refused: (destination) => note(`connection refused: ${destination}`),
      })
      releases.push(() => relay.close())
    }
    const group = await shared.groups?.create(
      `${control.environment_id}-${launch.generation}`,
      limits,
    )
    if (group) {
      releases.push(() => group.remove())
      oomKills = () => group.oomKills()
    }
    const [stdout, stderr, filter] = [
      await openLog(join(folder, 'logs/stdout.log')),
      await openLog(join(folder, 'logs/stderr.log')),
      await openFilter(isolation),
    ]
    releases.push(stdout.close, stderr.close)
    try {
      worker = await startProcess({
        command: [
          ...joinCommand(group?.join ?? []),
          ...isolationCommand(parts, readable),
          ...limitCommand(isolation, limits, shared.groups),
          process.execPath,
          sandboxed ? SANDBOX.program : shared.program,
        ],
        variables: variablesOf(parts, command),
        ...(filter && { filter: filter.fd }),
        stdout,
        stderr,
        signal: parts.signal,
      })
    } finally {
      await filter?.close()
    }
  } catch (error) {
    await release()
    throw error
  }

  let requested = false
  let reason: string | undefined
  const stopMeasuring = watchSize(
    folder,
    limits.disk_bytes,
    shared.measure_ms ?? MEASURE_MS.least,
    (bytes) => {
      reason =
        `The files of the environment use ${Math.ceil(bytes / MIB)} MiB, more than the limit of ` +
        `${Math.floor(limits.disk_bytes / MIB)} MiB. The worker was stopped.`
      worker.kill()
    },
  )
  let watch = () => {}
  const watched = new Promise<void>((done) => {
    watch = done
  })
  const finish = async (): Promise<void> => {
    const { code } = await worker.ended
    stopMeasuring()
    const killed = await oomKills()
    await endProcesses(belongingTo(shared.place, control))
    await worker.drained()
    await release().catch((error: Error) => note(`a resource was not released: ${error.message}`))
    await watched
    const error = reason ?? sentenceOf(code, killed, limits)
    note(requested ? 'worker ended on request' : (error ?? 'worker ended itself'))
    await parts.finish(
      requested
        ? undefined
        : {
            project: control.project,
            environment_id: control.environment_id,
            generation: launch.generation,
            idle: code === 0 && reason === undefined,
            ...(code !== undefined && { exit_code: code }),
            ...(error !== undefined && { error }),
          },
    )
  }
  return {
    generation: launch.generation,
    id: worker.id,
    finished: finish(),
    watch,
    stop: () => {
      requested = true
      worker.stop()
    },
    end: () => {
      requested = true
      worker.kill()
    },
  }
}

/** Returns a sentence that states why a worker ended; undefined for exit code 0. */
function sentenceOf(
  code: number | undefined,
  oomKills: number,
  { memory_bytes }: ResourceLimits,
): string | undefined {
  if (code === 0) return undefined
  const how = code === undefined ? 'was ended by a signal' : `ended with exit code ${code}`
  const memory =
    oomKills === 0
      ? ''
      : `, after ${oomKills} of its processes exceeded the memory limit of ` +
        `${Math.floor(memory_bytes / MIB)} MiB`
  return `The worker ${how}${memory}.`
}
