/**
 * Reads the settings of a node from flags and environment variables. `config/settings.ts` has the
 * table of all settings. A flag takes precedence over the environment variable, and both take
 * precedence over the default. For example, `--rate-key` is the flag of `BATON_RATE_KEY`.
 */

import { availableParallelism } from 'node:os'
import { closest } from '../client/suggest.ts'
import type { TriggerLimits } from '../protocol/events/sources.ts'
import { DEFAULT_BRAND } from '../protocol/naming.ts'
import { checkTiming, defaultTiming, type WorkerTiming } from '../protocol/workers/timing.ts'
import { type ConsoleConfig, consoleOf } from './config/console.ts'
import { type EnvironmentConfig, environmentsOf } from './config/environments.ts'
import { readFlags } from './config/flags.ts'
import { type LogConfig, logsOf } from './config/logs.ts'
import { natsAccessOf } from './config/nats.ts'
import {
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
import type { EnvelopeFormat } from './host/memory/codec.ts'
import { type ModelSettings, readModels } from './models.ts'
import type { Access } from './nats/server/access.ts'
import type { Bucket } from './s3/files.ts'

/** The configuration of a node. */
export interface Config {
  readonly host: string
  readonly port: number
  readonly data: string
  /**
   * Port of `/healthz`, `/readyz` and `/metrics` for a node that has no gateway, or whose gateway
   * does not serve the metrics. If absent, there is no such port.
   */
  readonly status_port?: number
  /**
   * Whether `/metrics` is served on the status port only, and the token that its readers must send.
   */
  readonly metrics: { readonly status_only: boolean; readonly token?: string }
  /** Addresses of the NATS servers. If empty, this process starts a NATS server. */
  readonly nats: readonly string[]
  /** Credentials, TLS, domain and prefix for the NATS servers. */
  readonly nats_access: Omit<Access, 'servers'>
  /** Path of the binary of the NATS server that this process starts. */
  readonly nats_server?: string
  /** Port of the NATS server that this process starts; 0 selects any free port. */
  readonly nats_port: number
  readonly sync: string
  /**
   * Maximum size in bytes of the store of the NATS server that this process starts. If absent, the
   * store may use most of the disk.
   */
  readonly nats_max_store?: number
  readonly roles: readonly Role[]
  readonly view_threads: boolean
  readonly root_key?: string
  /** The property of a list of runs that contains its items: `items`, `data`, or both. */
  readonly run_list: 'both' | 'items' | 'data'
  readonly brand: string
  readonly key_prefix: string
  readonly partitions: number
  readonly shards: number
  readonly replicas: number
  /** Limits on the stored log lines of jobs, and on the log lines that one job may write. */
  readonly logs: LogConfig
  /**
   * Newest format in which envelopes are written. An older format is used while any live node
   * cannot read this one.
   */
  readonly journal_format: EnvelopeFormat
  readonly rate: {
    readonly key: number
    readonly organization: number
    readonly window_seconds: number
  }
  /** Milliseconds that a request may take before it is answered with 503. */
  readonly deadline: number
  /**
   * Milliseconds after SIGTERM during which a gateway still serves requests, but reports that it is
   * not ready.
   */
  readonly drain: number
  /** Milliseconds between comments on a quiet event stream. */
  readonly keepalive: number
  /**
   * `age`: milliseconds after which the stream of a session ends, so that its client reconnects.
   * `idle`: milliseconds for which the stream stays open without active turns.
   */
  readonly sessions: { readonly age: number; readonly idle: number }
  readonly cors: readonly string[]
  /** Networks of the proxies whose header `X-Forwarded-For` names the client's address. */
  readonly trusted_proxies: readonly string[]
  /** URL at which people reach the gateways. The default is the URL of this node's gateway. */
  readonly public_url?: string
  /** The webhook that receives notifications about interactions, and the secret that signs them. */
  readonly notify?: { readonly url: string; readonly secret?: string }
  /**
   * The SMTP server for notifications, with its user and password, and the sender's address. If
   * absent, no e-mail is sent.
   */
  readonly email?: { readonly url: string; readonly from: string }
  /** Lease and heartbeat timing of workers, in seconds. */
  readonly timing: WorkerTiming
  /** Principal of workers on this machine that send no key. If absent, such workers are refused. */
  readonly anonymous_worker?: string
  /** Networks that may be called on behalf of users, in addition to public addresses. */
  readonly outbound_allow: readonly string[]
  /** Maximum number of jobs that an executor runs concurrently. */
  readonly executor_limit: number
  readonly log_level: (typeof levels)[number]
  readonly node_id?: string
  /** Models that the service itself calls, and how it reaches their providers. */
  readonly models: ModelSettings
  /** Domain of the e-mail addresses of agents. If absent, agents have no e-mail addresses. */
  readonly inbox_domain?: string
  /** The SMTP listener for e-mail to agents. `cert` and `key` are file paths. */
  readonly mail?: {
    readonly host: string
    readonly port: number
    readonly domain: string
    readonly limit: number
    /** DNS servers for SPF, DKIM and DMARC. If empty, the DNS servers of this machine are used. */
    readonly dns: readonly string[]
    readonly tls?: { readonly cert: string; readonly key: string }
  }
  /** Maximum number of loop runs in progress in the whole installation. The default is no limit. */
  readonly plan_concurrency?: number
  /** Maximum number of rows of a table. */
  readonly table_rows: number
  /**
   * Limits on the runs that triggers start: per event, including all events that its runs cause,
   * and per loop and minute.
   */
  readonly triggers: TriggerLimits
  /**
   * `max_keys` limits the number of unrevoked keys and tokens of a project, and of unrevoked keys
   * of the organization; `max_principals` limits the number of people and services of a project.
   */
  readonly access: { readonly max_keys: number; readonly max_principals: number }
  /**
   * `quota_bytes` limits the size of all artifacts together (0: no limit), and `max_bytes` the size
   * of each. `upload_ms` is the time after which an upload fails if its gateway does not renew it.
   */
  readonly artifacts: {
    readonly quota_bytes: number
    readonly max_bytes: number
    readonly upload_ms: number
  }
  readonly environments: EnvironmentConfig
  /** Console sessions, and the OpenID provider with which people sign in. */
  readonly console: ConsoleConfig
  /** The bucket that stores files. If absent, the object store of NATS stores them. */
  readonly bucket?: Bucket
}

/**
 * Variables of the command line, of `nats.conf` and of tests, which are not misspelled settings.
 */
const others: readonly string[] = [
  ...['BATON_URL', 'BATON_KEY', 'BATON_PROJECT', 'BATON_PROFILE', 'BATON_CONFIG'],
  ...['BATON_NATS_NAME', 'BATON_NATS_HOST', 'BATON_NATS_STORE', 'BATON_NATS_PID', 'BATON_CHROMIUM'],
  ...['BATON_SCREENSHOT', 'BATON_TEST_LOG'],
]
/**
 * Reports variables that look like misspelled settings. Names that resemble no setting are ignored,
 * because container platforms set variables for a service named "baton".
 */
const misspelt = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(env).flatMap((name) => {
    if (!name.startsWith('BATON_') || name in table || others.includes(name)) return []
    const meant = closest(
      name.slice(6),
      [...settingNames, ...others].map((one) => one.slice(6)),
    )
    return meant === undefined ? [] : [`${name} is not a setting. Did you mean BATON_${meant}?`]
  })

type Read = { readonly config: Config } | { readonly faults: readonly string[] }
/**
 * Reads the settings.
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
      // The value of a secret is not shown.
      const hidden = secrets.has(name) || value.confidential === true
      const given = hidden ? '' : ` is ${JSON.stringify(text)}: it`
      faults.push(`${flags.has(name) ? flagOf(name) : name}${given} ${value.wrong}`)
    } else values[name] = value
  }
  faults.push(...misspelt(env))
  // If values are missing because of faults, no configuration is returned, so the cast is safe.
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
      'BATON_REPLICAS is more than 1, but the embedded NATS server is a single server: ' +
        'set BATON_NATS to a cluster, or use `baton cluster`',
    )
  }
  if (v.BATON_METRICS === 'status' && v.BATON_STATUS_PORT === undefined)
    faults.push('BATON_METRICS is status, but no status port is set: set BATON_STATUS_PORT')
  const { BATON_NOTIFY_SMTP: smtp, BATON_NOTIFY_FROM: from } = v
  if (smtp !== undefined && from === undefined)
    faults.push('BATON_NOTIFY_SMTP is set, but the sender is missing: set BATON_NOTIFY_FROM')
  const mail = mailOf(v)
  if (typeof mail === 'string') faults.push(mail)
  const access = natsAccessOf(v)
  if (typeof access === 'string') faults.push(access)
  // These settings are combined only if there are no faults, because faulty settings have no
  // values.
  const console = faults.length === 0 ? consoleOf(v, v.BATON_PUBLIC_URL) : undefined
  if (typeof console === 'string') faults.push(console)
  const environments =
    faults.length === 0
      ? environmentsOf(v, v.BATON_ROLES, (v.BATON_GATEWAY_URL ?? v.BATON_PUBLIC_URL) !== undefined)
      : undefined
  if (typeof environments === 'string') faults.push(environments)
  if (
    faults.length > 0 ||
    'wrong' in models ||
    typeof mail === 'string' ||
    typeof access === 'string' ||
    typeof environments !== 'object' ||
    typeof console !== 'object'
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
      journal_format: Number(v.BATON_JOURNAL_FORMAT) as EnvelopeFormat,
      rate: {
        key: v.BATON_RATE_KEY,
        organization: v.BATON_RATE_ORG,
        window_seconds: v.BATON_RATE_WINDOW,
      },
      deadline: v.BATON_DEADLINE,
      drain: v.BATON_DRAIN * 1000,
      keepalive: v.BATON_KEEPALIVE * 1000,
      cors: v.BATON_CORS,
      trusted_proxies: v.BATON_TRUSTED_PROXIES,
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
      ...(smtp !== undefined && from !== undefined && { email: { url: smtp, from } }),
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
      artifacts: {
        quota_bytes: v.BATON_ARTIFACT_QUOTA,
        max_bytes: v.BATON_ARTIFACT_MAX,
        upload_ms: v.BATON_ARTIFACT_UPLOAD,
      },
      ...(v.BATON_ARTIFACTS && { bucket: v.BATON_ARTIFACTS }),
      environments,
      console,
      logs: logsOf(v),
      access: { max_keys: v.BATON_MAX_KEYS, max_principals: v.BATON_MAX_PRINCIPALS },
      table_rows: v.BATON_TABLE_ROWS,
      ...(v.BATON_PLAN_CONCURRENCY > 0 && { plan_concurrency: v.BATON_PLAN_CONCURRENCY }),
      ...(v.BATON_NODE_ID !== undefined && { node_id: v.BATON_NODE_ID }),
    },
  }
}

/**
 * Returns the settings of the SMTP listener, or undefined if the listener is not configured.
 * Returns a message if settings are missing.
 */
function mailOf(v: Values): Config['mail'] | string {
  const { BATON_SMTP_PORT: port, BATON_INBOX_DOMAIN: domain } = v
  const { BATON_SMTP_TLS_CERT: cert, BATON_SMTP_TLS_KEY: key } = v
  if (port === undefined) return undefined
  if (domain === undefined)
    return 'BATON_SMTP_PORT is set, but the domain of the addresses is missing: set BATON_INBOX_DOMAIN'
  if ((cert === undefined) !== (key === undefined))
    return 'BATON_SMTP_TLS_CERT and BATON_SMTP_TLS_KEY must be set together: set both or neither'
  return {
    host: v.BATON_SMTP_HOST,
    port,
    domain,
    limit: v.BATON_SMTP_MAX_BYTES,
    dns: v.BATON_SMTP_DNS,
    ...(cert !== undefined && key !== undefined && { tls: { cert, key } }),
  }
}

/**
 * The documentation of a setting. `standard` is the default, or undefined when the setting may be
 * absent.
 */
interface Described {
  readonly name: string
  readonly flag: string
  readonly standard: string | undefined
  readonly description: string
}
/** Returns all settings, for `--help` and the manual. */
export const settingsTable = (): Described[] =>
  settingNames.map((name) => ({
    name,
    flag: flagOf(name),
    standard: table[name].standard,
    description: table[name].description,
  }))
