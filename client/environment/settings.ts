/**
 * Reads the settings of the worker of an environment: variables whose names begin with the brand of
 * the installation, such as `SERVICE_API_URL`. The variable that ends with `_WORKER_ENVIRONMENT_ID`
 * determines the brand, so the program works with every brand.
 */
import { dirname, join, resolve, sep } from 'node:path'
import { KEEP_WARM_RULE } from '../../protocol/environments/keep-warm.ts'
import { type KeepWarm, keepWarmOf } from './keep-warm.ts'

/** The environment variables of a process. Unset variables are undefined or absent. */
export type Variables = Readonly<Record<string, string | undefined>>
/** Reports missing or invalid variables. The message is shown to users. */
export class SettingsFault extends Error {
  override readonly name = 'SettingsFault'
}

export interface Settings {
  /** Upper-case brand, the prefix of the variables. */
  readonly brand: string
  readonly url: readonly string[]
  readonly key: string
  readonly project: string
  readonly environment_id: string
  readonly workspace: string
  /** Folder of the logs. If absent, the log is written to standard error. */
  readonly logs?: string
  /** File that preserves the fence across restarts. If absent, the fence is kept in memory. */
  readonly fence?: string
  /** Queues to serve; all by default. */
  readonly queues?: readonly string[]
  /** Actions to serve; all by default. */
  readonly actions?: readonly string[]
  readonly concurrency: number
  readonly keepWarm: KeepWarm
  /** Whether only warnings and errors are logged. */
  readonly quiet: boolean
  /** Names of additional variables that are passed to commands. */
  readonly passed: readonly string[]
}

const SUFFIX = '_WORKER_ENVIRONMENT_ID'
/** Default number of concurrent jobs. */
const CONCURRENCY = 4
/** Maximum number of concurrent jobs that can be configured. */
const MAX_CONCURRENCY = 256
const quietLevels: ReadonlySet<string> = new Set(['warn', 'error', 'fatal', 'silent'])

/**
 * Reads the settings.
 * @throws SettingsFault if a variable is missing or invalid.
 */
export function settingsOf(variables: Variables): Settings {
  const brand = brandOf(variables)
  const name = (rest: string) => `${brand}_${rest}`
  const read = (rest: string) => variables[name(rest)]?.trim() || undefined
  const need = (rest: string): string => {
    const value = read(rest)
    if (value === undefined) throw new SettingsFault(`${name(rest)} is not set.`)
    return value
  }
  const workspace = resolve(need('RUNTIME_WORKSPACE'))
  const logs = read('WORKER_LOG_DIR')
  const queues = listOf(read('WORKER_QUEUES') ?? read('QUEUES'))
  const actions = listOf(read('WORKER_ACTION_NAMES'))
  const keepWarm = keepWarmOf(read('WORKER_KEEP_WARM'))
  if (!keepWarm) throw new SettingsFault(`${name('WORKER_KEEP_WARM')} ${KEEP_WARM_RULE}.`)
  const fence = fenceFile(read('WORKER_STATE_DIR'), logs, workspace)
  return {
    brand,
    url: listOf(need('API_URL')) ?? [],
    key: need('API_KEY'),
    project: read('PROJECT') ?? 'default',
    environment_id: need('WORKER_ENVIRONMENT_ID'),
    workspace,
    ...(logs !== undefined && { logs: resolve(logs) }),
    ...(fence !== undefined && { fence }),
    ...(queues && { queues }),
    ...(actions && { actions }),
    concurrency: concurrencyOf(name('WORKER_CONCURRENCY'), read('WORKER_CONCURRENCY')),
    keepWarm,
    quiet: quietLevels.has(read('LOG_LEVEL')?.toLowerCase() ?? ''),
    passed: listOf(read('WORKER_PASSED_VARIABLES')) ?? [],
  }
}
/**
 * Determines the brand from the names of the variables. If several brands are possible, the one
 * with an API key is used.
 */
function brandOf(variables: Variables): string {
  const all = Object.keys(variables)
    .filter((name) => name.length > SUFFIX.length && name.endsWith(SUFFIX) && variables[name])
    .map((name) => name.slice(0, -SUFFIX.length))
  const found = all.length > 1 ? all.filter((brand) => variables[`${brand}_API_KEY`]) : all
  const [brand] = found
  if (brand === undefined)
    throw new SettingsFault(`No variable named <BRAND>${SUFFIX} is set, such as SERVICE${SUFFIX}.`)
  if (found.length > 1)
    throw new SettingsFault(`Several variables end in ${SUFFIX}: unset all but one.`)
  return brand
}
const listOf = (text: string | undefined): readonly string[] | undefined => {
  const items = text
    ?.split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  return items && items.length > 0 ? items : undefined
}
function concurrencyOf(name: string, text: string | undefined): number {
  if (text === undefined) return CONCURRENCY
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > MAX_CONCURRENCY)
    throw new SettingsFault(`${name} must be a whole number from 1 to ${MAX_CONCURRENCY}.`)
  return value
}
/**
 * Returns the path of the fence file; undefined if no folder is configured for it, or if the file
 * would be inside the workspace, where commands could change it.
 */
function fenceFile(
  state: string | undefined,
  logs: string | undefined,
  workspace: string,
): string | undefined {
  const folder = state ?? (logs === undefined ? undefined : dirname(resolve(logs)))
  if (folder === undefined) return undefined
  const file = join(resolve(folder), 'fence')
  return file.startsWith(workspace.endsWith(sep) ? workspace : workspace + sep) ? undefined : file
}
