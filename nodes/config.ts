/**
 * The settings of a node: one table of names, defaults, meanings and checks. A setting is read from its flag, else from its
 * environment variable, else it has its default. `BATON_RATE_KEY` and `--rate-key` are the same setting.
 */
import { availableParallelism } from 'node:os'
import { parseDuration } from '../protocol/common.ts'
import { readModels, type ModelSettings } from './models.ts'
import { wrongNetwork } from './outbound/guard.ts'
import { checkTiming, defaultTiming, type WorkerTiming } from '../protocol/worker.ts'

/** What a node can do. */
export const roles = ['gateway', 'shards', 'views', 'executor'] as const
type Role = (typeof roles)[number]
const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** What a node runs with. */
export interface Config {
  readonly host: string
  readonly port: number
  /** Folder of everything the node keeps. */
  readonly data: string
  /** Port of `/healthz`, `/readyz` and `/metrics` of a node without a gateway; absent: none. */
  readonly status_port?: number
  /** Addresses of the NATS servers; empty: run one beside this process. */
  readonly nats: readonly string[]
  /** Binary of the server beside this process, and its port (0: any). */
  readonly nats_server?: string
  readonly nats_port: number
  readonly sync: string
  readonly roles: readonly Role[]
  /** Whether views run in threads of their own. */
  readonly view_threads: boolean
  readonly root_key?: string
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
  /** Runs of loops that may be under way in the whole installation; absent: any number. */
  readonly plan_concurrency?: number
}

/** A faulty text gives a sentence that says what is accepted. */
interface Fault {
  readonly wrong: string
}
type Parse<T> = (text: string) => T | Fault
const wrong = (sentence: string): Fault => ({ wrong: sentence })

const integer =
  (from: number, to: number): Parse<number> =>
  (text) =>
    /^\d+$/.test(text) && Number(text) >= from && Number(text) <= to
      ? Number(text)
      : wrong(`must be a whole number from ${from} to ${to}`)
/** A number of `unit` milliseconds, or a duration such as `15s`. The result counts units. */
const duration =
  (unit: 1 | 1000, from: number, to: number): Parse<number> =>
  (text) => {
    const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * unit : parseDuration(text)
    const amount = ms === undefined ? Number.NaN : ms / unit
    return amount >= from && amount <= to
      ? amount
      : wrong(
          `must be from ${from} to ${to} ${unit === 1 ? 'milliseconds' : 'seconds'}, or a duration such as 15s`,
        )
  }
const matching =
  (pattern: RegExp, sentence: string): Parse<string> =>
  (text) =>
    pattern.test(text) ? text : wrong(sentence)
const oneOf =
  <const T extends string>(...values: readonly T[]): Parse<T> =>
  (text) =>
    values.find((value) => value === text) ?? wrong(`must be one of ${values.join(', ')}`)
const each =
  <T>(parse: Parse<T>): Parse<T[]> =>
  (text) => {
    const items = text
      .split(',')
      .map((item) => item.trim())
      .filter(Boolean)
      .map(parse)
    return (
      (items.find((item) => typeof item === 'object' && item !== null && 'wrong' in item) as
        | Fault
        | undefined) ?? (items as T[])
    )
  }
/** `on` stands for the given text, `off` for nothing. */
const switched =
  (on: string, pattern: RegExp): Parse<string> =>
  (text) =>
    /^(on|true|1|yes)$/i.test(text)
      ? on
      : /^(off|false|0|no)$/i.test(text)
        ? ''
        : pattern.test(text)
          ? text
          : wrong('must be on, off or an id')
const any = matching(/^[^\0]+$/, 'must not be empty')
const address = matching(
  /^((nats|tls|ws|wss):\/\/)?[^\s/]+(:\d+)?$/,
  'must be addresses such as nats://10.0.0.1:4222, comma-separated',
)
const origin = matching(
  /^(\*|https?:\/\/[^\s/,]+)$/,
  'must be origins such as https://example.org, or *',
)
const network: Parse<string> = (text) => {
  const sentence = wrongNetwork(text)
  return sentence === undefined ? text : wrong(sentence)
}
const sync: Parse<string> = (text) =>
  text === 'always' || (parseDuration(text) ?? 0) >= 1000
    ? text
    : wrong('must be always or a duration of at least 1s, such as 2m')
const replicas: Parse<number> = (text) =>
  [1, 3, 5].includes(Number(text)) ? Number(text) : wrong('must be 1, 3 or 5')

interface Setting<T> {
  /** The text that counts when nothing is set; undefined: the setting may be absent. */
  readonly standard: string | undefined
  readonly meaning: string
  readonly parse: Parse<T>
}
const setting = <T>(standard: string, parse: Parse<T>, meaning: string): Setting<T> => ({
  standard,
  parse,
  meaning,
})
const optional = <T>(parse: Parse<T>, meaning: string): Setting<T | undefined> => ({
  standard: undefined,
  parse,
  meaning,
})
const seconds = (name: keyof WorkerTiming, meaning: string) =>
  setting(String(defaultTiming[name]), duration(1000, 1, 3600), `${meaning}, in seconds`)

const table = {
  BATON_HOST: setting('127.0.0.1', any, 'Address to listen on; 0.0.0.0 for all'),
  BATON_PORT: setting('8080', integer(0, 65_535), 'Port of the HTTP interface; 0 for any free one'),
  BATON_STATUS_PORT: optional(
    integer(0, 65_535),
    'Port of /healthz, /readyz and /metrics of a node that has no gateway; absent: none',
  ),
  BATON_DATA: setting('.baton', any, 'Folder of everything the node keeps'),
  BATON_ROLES: setting(
    roles.join(','),
    each(oneOf(...roles)),
    'What this process does, comma-separated',
  ),
  BATON_VIEW_THREADS: setting(
    'auto',
    oneOf('auto', 'on', 'off'),
    'Whether views run in threads of their own; auto: when the process does more than that, and has processors for it',
  ),
  BATON_NATS: setting(
    '',
    each(address),
    'NATS servers, comma-separated; empty runs one beside this process',
  ),
  BATON_NATS_SERVER: optional(
    any,
    'nats-server binary to run; else from the PATH, the cache or the Debian archive',
  ),
  BATON_NATS_PORT: setting(
    '0',
    integer(0, 65_535),
    'Port of the NATS server beside this process; 0 for any free one',
  ),
  BATON_SYNC: setting(
    'always',
    sync,
    'When the NATS server beside this process writes to disk: before it acknowledges, or every so often',
  ),
  BATON_PARTITIONS: setting(
    '1',
    integer(1, 64),
    'Journals that projects are spread over; fixed once the store exists',
  ),
  BATON_SHARDS: setting(
    '4',
    integer(1, 64),
    'Shards of each partition; fixed once the store exists',
  ),
  BATON_REPLICAS: setting(
    '1',
    replicas,
    'Copies that NATS servers keep; more than 1 needs a NATS cluster',
  ),
  BATON_ROOT_KEY: optional(
    matching(/^[\w-]{16,200}$/, 'must be 16 to 200 letters, digits, - or _'),
    'API key of the first administrator; made at the first start and kept in the data folder when absent',
  ),
  BATON_BRAND: setting(
    'Service',
    matching(/^[A-Za-z][A-Za-z0-9]{0,31}$/, 'must be letters and digits, beginning with a letter'),
    'Name in headers (X-<Brand>-…) and, in lower case, in permissions',
  ),
  BATON_KEY_PREFIX: setting(
    'bat',
    matching(/^[a-z][a-z0-9]{0,15}$/, 'must be lower-case letters and digits'),
    'What API keys begin with',
  ),
  BATON_RATE_KEY: setting(
    '600',
    integer(0, 10_000_000),
    'Requests of one key in a window; 0 for no limit',
  ),
  BATON_RATE_ORG: setting(
    '6000',
    integer(0, 100_000_000),
    'Requests of the organization in a window; 0 for no limit',
  ),
  BATON_RATE_WINDOW: setting('60', duration(1000, 1, 3600), 'Length of a window in seconds'),
  BATON_DEADLINE: setting(
    '15000',
    duration(1, 100, 120_000),
    'Milliseconds a request may take before it is answered 503; longer than a NATS election',
  ),
  BATON_DRAIN: setting(
    '5',
    duration(1000, 0, 600),
    'Seconds after SIGTERM in which a gateway says that it is not ready, but serves; longer than load balancers take to notice',
  ),
  BATON_KEEPALIVE: setting(
    '15',
    duration(1000, 1, 300),
    'Seconds between comments on a quiet event stream',
  ),
  BATON_STREAM_AGE: setting(
    '55',
    duration(1000, 1, 86_400),
    'Seconds after which the stream of a session asks its client to come back; some clients give up an exchange after 60',
  ),
  BATON_STREAM_IDLE: setting(
    '2',
    duration(1000, 0, 3600),
    'Seconds for which the stream of a session without active turns stays open',
  ),
  BATON_CORS: setting('', each(origin), 'Origins whose pages may call, comma-separated'),
  BATON_PUBLIC_URL: optional(
    matching(
      /^https?:\/\/[^\s?#]+[^\s?#/]$/,
      'must be an address such as https://baton.example.org',
    ),
    'Address under which people reach the gateways, for links; by default that of the own gateway',
  ),
  BATON_NOTIFY_URL: optional(
    matching(/^https?:\/\/[^\s/?#]+([/?#]\S*)?$/, 'must be an absolute http or https address'),
    'Address that is sent a message with answer links whenever people are asked; absent: off',
  ),
  BATON_NOTIFY_SECRET: optional(
    matching(/^\S{16,512}$/, 'must be at least 16 characters'),
    'Secret that signs those messages',
  ),
  BATON_NOTIFY_SMTP: optional(
    matching(
      /^smtps?:\/\/[^\s/?#]+([/?#]\S*)?$/,
      'must be an address such as smtp://user:password@mail.example.org:587',
    ),
    'Mail server that takes a letter with an answer link for everybody who is asked and has an address; smtps:// begins with TLS, ?requireTLS=true insists on it; absent: off',
  ),
  BATON_NOTIFY_FROM: optional(
    matching(
      /^[^\s<>@]+@[^\s<>@]+$|^[^<>\r\n]+ <[^\s<>@]+@[^\s<>@]+>$/,
      'must be an address such as baton@example.org, or with a name: Baton <baton@example.org>',
    ),
    'Sender of those letters',
  ),
  BATON_WORKER_LEASE: seconds('lease', 'How long a job stays with a silent worker'),
  BATON_WORKER_CADENCE: seconds('cadence', 'How often workers report that they live'),
  BATON_WORKER_POLL: seconds('poll', 'How often workers ask for work without being told of any'),
  BATON_WORKER_STALE: seconds('stale', 'Silence after which a worker counts as gone'),
  BATON_WORKER_TAKEOVER: seconds('takeover', 'How long a lost worker connection can be resumed'),
  BATON_ANONYMOUS_WORKER: setting(
    'off',
    switched('anonymous', /^\w{1,64}$/),
    'Accept workers from this machine without a key, as this principal (on: `anonymous`); for development',
  ),
  BATON_OUTBOUND_ALLOW: setting(
    '',
    each(network),
    'Networks that HTTP actions and signed deliveries may call beside public addresses, also without TLS, such as 127.0.0.1/32,10.0.0.0/8',
  ),
  BATON_EXECUTOR_CONCURRENCY: setting(
    '64',
    integer(1, 10_000),
    'Calls that a node with the role executor makes at once',
  ),
  BATON_LOG_LEVEL: setting('info', oneOf(...levels), 'Least important log line that is written'),
  BATON_MODELS: setting(
    '',
    (text) => text,
    'Models of the service: JSON, or the path of a file with JSON; see docs/models.md',
  ),
  BATON_INBOX_DOMAIN: optional(
    matching(
      /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/,
      'must be a domain such as agents.example.org',
    ),
    'Domain of the e-mail addresses of agents; absent: agents get none',
  ),
  BATON_PLAN_CONCURRENCY: setting(
    '0',
    integer(0, 100_000),
    'Runs of loops that may be under way in the whole installation, the same on all nodes; the others wait. 0 for no limit',
  ),
  BATON_NODE_ID: optional(
    matching(/^[A-Za-z0-9_-]{1,64}$/, 'must be up to 64 letters, digits, - or _'),
    'Name of this node, unique in the installation; random when absent',
  ),
} as const
type Name = keyof typeof table
const settingNames = Object.keys(table) as Name[]
type Values = { [N in Name]: (typeof table)[N] extends Setting<infer T> ? T : never }

/** Settings that hold secrets. */
const secrets: ReadonlySet<Name> = new Set([
  'BATON_ROOT_KEY',
  'BATON_NOTIFY_SECRET',
  'BATON_NOTIFY_SMTP',
])
const flagOf = (name: Name): string =>
  `--${name.slice('BATON_'.length).toLowerCase().replaceAll('_', '-')}`
const byFlag = new Map(settingNames.map((name) => [flagOf(name), name]))

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
  const models = readModels(v.BATON_MODELS ?? '', v.BATON_BRAND ?? 'Service')
  if ('wrong' in models) faults.push(`BATON_MODELS ${models.wrong}`)
  if (v.BATON_ROLES?.length === 0)
    faults.push(`BATON_ROLES is empty: name at least one of ${roles.join(', ')}`)
  if (v.BATON_REPLICAS > 1 && v.BATON_NATS?.length === 0) {
    faults.push(
      'BATON_REPLICAS is more than 1, but the NATS server beside this process is only one: name a cluster in BATON_NATS, or use `baton cluster`',
    )
  }
  const { BATON_NOTIFY_SMTP: smtp, BATON_NOTIFY_FROM: from } = v
  if (smtp !== undefined && from === undefined)
    faults.push('BATON_NOTIFY_SMTP is set: name the sender of letters in BATON_NOTIFY_FROM')
  if (faults.length > 0 || 'wrong' in models) return { faults }
  return {
    config: {
      host: v.BATON_HOST,
      port: v.BATON_PORT,
      data: v.BATON_DATA,
      nats: v.BATON_NATS,
      nats_port: v.BATON_NATS_PORT,
      sync: v.BATON_SYNC,
      roles: [...new Set(v.BATON_ROLES)],
      view_threads:
        v.BATON_VIEW_THREADS === 'on' ||
        (v.BATON_VIEW_THREADS === 'auto' &&
          new Set(v.BATON_ROLES).size > 1 &&
          availableParallelism() > 1),
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
      ...(v.BATON_NATS_SERVER !== undefined && { nats_server: v.BATON_NATS_SERVER }),
      ...(v.BATON_ROOT_KEY !== undefined && { root_key: v.BATON_ROOT_KEY }),
      ...(v.BATON_ANONYMOUS_WORKER !== '' && { anonymous_worker: v.BATON_ANONYMOUS_WORKER }),
      ...(v.BATON_INBOX_DOMAIN !== undefined && { inbox_domain: v.BATON_INBOX_DOMAIN }),
      ...(v.BATON_PLAN_CONCURRENCY > 0 && { plan_concurrency: v.BATON_PLAN_CONCURRENCY }),
      ...(v.BATON_NODE_ID !== undefined && { node_id: v.BATON_NODE_ID }),
    },
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
