/**
 * Opens the `local` provider: each environment is a folder on this machine with a supervised worker
 * process, in a sandbox if possible. `environments.ts` performs the operations.
 */
import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createGuard, type Guard } from '../../outbound/guard.ts'
import type { Provider } from '../provider.ts'
import { LocalEnvironments } from './environments.ts'
import { type Folders, openFolders } from './folders.ts'
import {
  describeIsolation,
  type IsolationKind,
  isolationKinds,
  type OpenedIsolation,
  openIsolation,
} from './isolation.ts'
import { type Groups, openGroups, type ResourceLimits } from './limits.ts'
import { belongingTo, endProcesses, markerOf } from './processes.ts'
import type { SharedResources } from './run.ts'

export interface LocalOptions {
  /** Folder for all data of the node. */
  readonly data: string
  readonly limits: ResourceLimits
  /** Whether workers may run without any isolation. */
  readonly unsafe: boolean
  /** Checks the addresses of repository hosts. By default, they must be public. */
  readonly guard?: Guard
  /** Receives warnings for the operator. */
  warn?(sentence: string): void
  /** The kinds of isolation to try, best first; all of them by default. */
  readonly kinds?: readonly IsolationKind[]
  /** Whether control groups may be used; true by default. */
  readonly groups?: boolean
  /** Minimum pause in milliseconds between two measurements of an environment's disk usage. */
  readonly measure_ms?: number
}

/** The program that runs as the first process of a worker. */
const program = fileURLToPath(new URL('./inside.mjs', import.meta.url))

/**
 * Opens the provider. Ends the processes that an earlier process of the host left behind.
 * @returns the provider, or why it is unavailable, with advice for the operator.
 */
export async function createLocalProvider(
  options: LocalOptions,
): Promise<Provider | { readonly unavailable: string }> {
  const { limits } = options
  const folders = await openFolders(resolve(options.data))
  if ('unavailable' in folders) return folders
  const root = await realpath(folders.root)
  const groups =
    options.groups === false
      ? undefined
      : await openGroups(`baton-${folders.place.slice('local/'.length)}`, limits)
  const opened = await openIsolation({
    root,
    kinds: options.kinds ?? isolationKinds,
    program,
    unsafe: options.unsafe,
    limits,
    groups,
  })
  if (!('isolation' in opened)) {
    await groups?.close()
    await folders.release()
    return {
      unavailable:
        `${opened.missing.join('; ')}. Install bubblewrap (Debian: apt install bubblewrap), ` +
        'or set BATON_UNSAFE_LOCAL=1 on a machine for development',
    }
  }
  const isolation = describeIsolation(opened.isolation, limits, groups)
  warnWithoutSandbox(options, opened, isolation)
  await endRemains(folders, groups)
  const shared: SharedResources = {
    root,
    place: folders.place,
    isolation: opened.isolation,
    groups,
    limits,
    guard: options.guard ?? createGuard([]),
    program,
    ...(options.measure_ms !== undefined && { measure_ms: options.measure_ms }),
  }
  return new LocalEnvironments(folders, shared, isolation)
}

function warnWithoutSandbox(
  { warn }: LocalOptions,
  { isolation: { kind }, missing }: OpenedIsolation,
  current: string,
): void {
  if (kind === 'sandbox') return
  warn?.(
    `Workers of environments run without a sandbox. ${missing.map((one) => `${one}. `).join('')}` +
      `Current isolation: ${current}.` +
      (kind === 'none'
        ? ' Workers can read the data folder and all keys of this installation.'
        : ''),
  )
}

/**
 * Ends the workers that are still running, which belong to an earlier process of the host, and
 * removes what interrupted operations have left behind.
 */
async function endRemains(folders: Folders, groups: Groups | undefined): Promise<void> {
  await endProcesses({ marker: markerOf(folders.place) })
  for (const control of await folders.list()) {
    await endProcesses(belongingTo(folders.place, control))
    const { generation: _, supervisor: __, ...rest } = control
    if (control.generation !== undefined) await folders.write(rest)
  }
  await groups?.clear()
  await folders.removeRemains()
}
