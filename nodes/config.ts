/**
 * The settings of a node: one table of names, defaults, meanings and checks. A setting is read from its flag, else from its
 * environment variable, else it has its default. `BATON_RATE_KEY` and `--rate-key` are the same setting.
 */
import { DEFAULT_BRAND } from '../protocol/naming.ts'
import type { TriggerLimits } from '../protocol/events/sources.ts'
import { availableParallelism } from 'node:os'
import { checkTiming, defaultTiming, type WorkerTiming } from '../protocol/workers/socket.ts'
import {
  byFlag,
  flagOf,
  type levels,
  type Name,
  type Role,
  roles,
  secrets,
  settingNames,
  table,
  type Values,
} from './config/settings.ts'
import { natsAccessOf } from './config/nats.ts'
import type { Access } from './nats/server/access.ts'
import { closest } from '../client/suggest.ts'
import { readModels, type ModelSettings } from './models.ts'

/** What a node runs with. */
export interface Config {
  readonly host: string
  readonly port: number
  /** Folder of everything the node keeps. */
  readonly data: string
  /** Port of `/healthz`, `/readyz` and `/metrics` of a node without a gateway; absent: none. */
  readonly status_port?: number
  /** Who may read `/metrics`, and where. */
  readonly metrics: { readonly status_only: boolean; readonly token?: string }
  /** Addresses of the NATS servers; empty: run one beside this process. */
  readonly nats: readonly string[]
  /** Credentials, TLS, domain and prefix for those servers. */
  readonly nats_access: Omit<Access, 'servers'>
  /** Binary of the server beside this process, and its port (0: any). */
  readonly nats_server?: string
  readonly nats_port: number
  readonly sync: string
  /** Bytes that its store may have on the disk; absent: most of the disk. */
  readonly nats_max_store?: number
  readonly roles: readonly Role[]
  /** Whether views run in threads of their own. */
  readonly view_threads: boolean
  readonly root_key?: string
  /** Names under which lists of runs have their array. */
  readonly run_list: 'both' | 'items' | 'data'
  readonly brand: string
  readonly key_prefix: string
  readonly partitions: number
  readonly shards: number
  readonly replicas: number
  readonly rate: {
    readonly key: number
    readonly organization: number
    readonly window_seconds: number
  }
  /** Milliseconds. */
  readonly deadline: number
  /** Milliseconds for which a gateway that was told to end still serves, while it says that it is not ready. */
  readonly drain: number
  /** Milliseconds. */
  readonly keepalive: number
  /** Milliseconds. */
  readonly sessions: { readonly age: number; readonly idle: number }
  readonly cors: readonly string[]
  /** Address under which people reach the gateways; absent: that of the own gateway. */
  readonly public_url?: string
  /** Where people are told of interactions, and the secret that signs it; absent: nowhere. */
  readonly notify?: { readonly url: string; readonly secret?: string }
  /** The mail server over which people are told, with its user and password, and the sender; absent: none. */
  readonly letters?: { readonly url: string; readonly from: string }
  /** Seconds. */
  readonly timing: WorkerTiming
  /** Principal of workers on this machine that show no key; absent: they are refused. */
  readonly anonymous_worker?: string
  /** Networks that may be called on behalf of users beside public addresses. */
  readonly outbound_allow: readonly string[]
  /** Jobs that an executor does at once. */
  readonly executor_limit: number
  readonly log_level: (typeof levels)[number]
  readonly node_id?: string
  /** Models that the service itself speaks to, and how. */
  readonly models: ModelSettings
  /** Domain of the addresses of agents; absent: they have none. */
  readonly inbox_domain?: string
  /** Where e-mail for agents is taken; absent: nowhere. Certificate and key are files. */
  readonly mail?: {
    readonly host: string
    readonly port: number
    readonly domain: string
    readonly limit: number
    /** DNS servers for SPF, DKIM and DMARC; none: those of this machine. */
    readonly dns: readonly string[]
    readonly tls?: { readonly cert: string; readonly key: string }
  }
  /** Runs of loops that may be under way in the whole installation; absent: any number. */
  readonly plan_concurrency?: number
  /** How many runs triggers start for events of runs. */
  readonly triggers: TriggerLimits
  /** Keys and tokens, and principals, that a project or the organization may have. */
  readonly access: { readonly max_keys: number; readonly max_principals: number }
}

/** Texts given as flags: `--port 8080`, `--port=8080`; `--anonymous-worker` alone means on. */
function readFlags(argv: readonly string[], faults: string[]): Map<Name, string> {
  const given = new Map<Name, string>()
  for (let i = 0; i < argv.length; i++) {
    const [word = '', ...rest] = (argv[i] ?? '').split('=')
    const name = byFlag.get(word)
    if (!name) {
      faults.push(
        word.startsWith('-')
          ? `${word} is no setting; --help lists them`
          : `${word} is not understood; settings begin with --`,
      )
      // Its value, when there is one, is no second fault.
      if (word.startsWith('--') && rest.length === 0 && argv[i + 1]?.startsWith('-') === false) i++
      continue
    }
    const next = argv[i + 1]
    if (rest.length > 0) given.set(name, rest.join('='))
    else if (next !== undefined && !next.startsWith('--')) given.set(name, argv[++i] ?? '')
    else if (table[name].standard === 'off') given.set(name, 'on')
    else faults.push(`${word} needs a value: ${table[name].meaning}`)
  }
  return given
}

/** Variables of other parts of Baton: the command line, `nats.conf`, tests. */
const others: readonly string[] = [
  ...['BATON_URL', 'BATON_KEY', 'BATON_PROJECT', 'BATON_PROFILE', 'BATON_CONFIG'],
  ...['BATON_NATS_NAME', 'BATON_NATS_HOST', 'BATON_NATS_STORE', 'BATON_NATS_PID', 'BATON_CHROMIUM'],
  ...['BATON_SCREENSHOT', 'BATON_TEST_LOG'],
]
/**
 * Variables that look like misspelt settings. Names that resemble none are left alone: container platforms set variables of
 * their own for a service of the name "baton".
 */
const misspelt = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(env).flatMap((name) => {
    if (!name.startsWith('BATON_') || name in table || others.includes(name)) return []
    const meant = closest(
      name.slice(6),
      [...settingNames, ...others].map((one) => one.slice(6)),
    )
    return meant === undefined ? [] : [`${name} is no setting. Did you mean BATON_${meant}?`]
  })

/** A complete configuration, or every fault with what to do about it. */
type Read = { readonly config: Config } | { readonly faults: readonly string[] }
/**
 * Read the settings.
 * @param argv flags, without program and subcommand.
 */
export function readConfig(
  env: Readonly<Record<string, string | undefined>>,
  argv: readonly string[],
): Read {
  const faults: string[] = []
  const flags = readFlags(argv, faults)
  const values: Partial<Record<Name, unknown>> = {}
  for (const name of settingNames) {
    const { standard, parse } = table[name]
    const text = flags.get(name) ?? (env[name] || standard)
    const value = text === undefined ? undefined : parse(text)
    if (typeof value === 'object' && 'wrong' in value) {
      // A secret is not repeated.
      const given = secrets.has(name) ? '' : ` is ${JSON.stringify(text)}: it`
      faults.push(`${flags.has(name) ? flagOf(name) : name}${given} ${value.wrong}`)
    } else values[name] = value
  }
  faults.push(...misspelt(env))
  // Complete unless there are faults, and then it is not used.
  const v = values as Values
  const timing: WorkerTiming = {
    lease: v.BATON_WORKER_LEASE,
    cadence: v.BATON_WORKER_CADENCE,
    poll: v.BATON_WORKER_POLL,
    stale: v.BATON_WORKER_STALE,
    takeover: v.BATON_WORKER_TAKEOVER,
    register: defaultTiming.register,
  }
  if (faults.length === 0)
    faults.push(...checkTiming(timing).map((fault) => `${fault}; see BATON_WORKER_*`))
  const models = readModels(v.BATON_MODELS ?? '', v.BATON_BRAND ?? DEFAULT_BRAND)
  if ('wrong' in models) faults.push(`BATON_MODELS ${models.wrong}`)
  if (v.BATON_ROLES?.length === 0)
    faults.push(`BATON_ROLES is empty: name at least one of ${roles.join(', ')}`)
  if (v.BATON_REPLICAS > 1 && v.BATON_NATS?.length === 0) {
    faults.push(
      'BATON_REPLICAS is more than 1, but the NATS server beside this process is only one: name a cluster in BATON_NATS, or use `baton cluster`',
    )
  }
  if (v.BATON_METRICS === 'status' && v.BATON_STATUS_PORT === undefined)
    faults.push('BATON_METRICS is status: name the port in BATON_STATUS_PORT')
  const { BATON_NOTIFY_SMTP: smtp, BATON_NOTIFY_FROM: from } = v
  if (smtp !== undefined && from === undefined)
    faults.push('BATON_NOTIFY_SMTP is set: name the sender of letters in BATON_NOTIFY_FROM')
  const mail = mailOf(v)
  if (typeof mail === 'string') faults.push(mail)
  const access = natsAccessOf(v)
  if (typeof access === 'string') faults.push(access)
  if (
    faults.length > 0 ||
    'wrong' in models ||
    typeof mail === 'string' ||
    typeof access === 'string'
  )
    return { faults }
  return {
    config: {
      host: v.BATON_HOST,
      port: v.BATON_PORT,
      data: v.BATON_DATA,
      nats: v.BATON_NATS,
      nats_access: access,
      nats_port: v.BATON_NATS_PORT,
      sync: v.BATON_SYNC,
      roles: [...new Set(v.BATON_ROLES)],
      view_threads:
        v.BATON_VIEW_THREADS === 'on' ||
        (v.BATON_VIEW_THREADS === 'auto' &&
          new Set(v.BATON_ROLES).size > 1 &&
          availableParallelism() > 1),
      metrics: {
        status_only: v.BATON_METRICS === 'status',
        ...(v.BATON_METRICS_TOKEN !== undefined && { token: v.BATON_METRICS_TOKEN }),
      },
      run_list: v.BATON_RUN_LIST,
      brand: v.BATON_BRAND,
      key_prefix: v.BATON_KEY_PREFIX,
      partitions: v.BATON_PARTITIONS,
      shards: v.BATON_SHARDS,
      replicas: v.BATON_REPLICAS,
      rate: {
        key: v.BATON_RATE_KEY,
        organization: v.BATON_RATE_ORG,
        window_seconds: v.BATON_RATE_WINDOW,
      },
      deadline: v.BATON_DEADLINE,
      drain: v.BATON_DRAIN * 1000,
      keepalive: v.BATON_KEEPALIVE * 1000,
      cors: v.BATON_CORS,
      timing,
      log_level: v.BATON_LOG_LEVEL,
      models,
      outbound_allow: v.BATON_OUTBOUND_ALLOW,
      executor_limit: v.BATON_EXECUTOR_CONCURRENCY,
      sessions: { age: v.BATON_STREAM_AGE * 1000, idle: v.BATON_STREAM_IDLE * 1000 },
      ...(v.BATON_PUBLIC_URL !== undefined && { public_url: v.BATON_PUBLIC_URL }),
      ...(v.BATON_NOTIFY_URL !== undefined && {
        notify: {
          url: v.BATON_NOTIFY_URL,
          ...(v.BATON_NOTIFY_SECRET !== undefined && { secret: v.BATON_NOTIFY_SECRET }),
        },
      }),
      ...(smtp !== undefined && from !== undefined && { letters: { url: smtp, from } }),
      ...(v.BATON_STATUS_PORT !== undefined && { status_port: v.BATON_STATUS_PORT }),
      ...(v.BATON_NATS_MAX_STORE !== undefined && { nats_max_store: v.BATON_NATS_MAX_STORE }),
      ...(v.BATON_NATS_SERVER !== undefined && { nats_server: v.BATON_NATS_SERVER }),
      ...(v.BATON_ROOT_KEY !== undefined && { root_key: v.BATON_ROOT_KEY }),
      ...(v.BATON_ANONYMOUS_WORKER !== '' && { anonymous_worker: v.BATON_ANONYMOUS_WORKER }),
      ...(v.BATON_INBOX_DOMAIN !== undefined && { inbox_domain: v.BATON_INBOX_DOMAIN }),
      ...(mail && { mail }),
      triggers: {
        per_root: v.BATON_TRIGGERED_RUNS,
        per_minute: v.BATON_TRIGGERED_RUNS_PER_MINUTE,
      },
      access: { max_keys: v.BATON_MAX_KEYS, max_principals: v.BATON_MAX_PRINCIPALS },
      ...(v.BATON_PLAN_CONCURRENCY > 0 && { plan_concurrency: v.BATON_PLAN_CONCURRENCY }),
      ...(v.BATON_NODE_ID !== undefined && { node_id: v.BATON_NODE_ID }),
    },
  }
}

/** Where e-mail is taken; undefined: nowhere. A text says which setting is missing. */
function mailOf(v: Values): Config['mail'] | string {
  const { BATON_SMTP_PORT: port, BATON_INBOX_DOMAIN: domain } = v
  const { BATON_SMTP_TLS_CERT: cert, BATON_SMTP_TLS_KEY: key } = v
  if (port === undefined) return undefined
  if (domain === undefined)
    return 'BATON_SMTP_PORT is set: name the domain of the addresses of agents in BATON_INBOX_DOMAIN'
  if ((cert === undefined) !== (key === undefined))
    return 'BATON_SMTP_TLS_CERT and BATON_SMTP_TLS_KEY belong together: set both or none'
  return {
    host: v.BATON_SMTP_HOST,
    port,
    domain,
    limit: v.BATON_SMTP_MAX_BYTES,
    dns: v.BATON_SMTP_DNS,
    ...(cert !== undefined && key !== undefined && { tls: { cert, key } }),
  }
}

/** A setting as people read it; `standard` is its default, undefined when it may be absent. */
interface Described {
  readonly name: string
  readonly flag: string
  readonly standard: string | undefined
  readonly meaning: string
}
/** All settings, for `--help` and the manual. */
export const settingsTable = (): Described[] =>
  settingNames.map((name) => ({
    name,
    flag: flagOf(name),
    standard: table[name].standard,
    meaning: table[name].meaning,
  }))
