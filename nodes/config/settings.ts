/**
 * The table of settings: names, defaults, descriptions, checks. A new setting is a new row here.
 */
import { DEFAULT_BRAND } from '../../protocol/naming.ts'
import { defaultTriggerLimits } from '../../protocol/events/sources.ts'
import { defaultTiming, type WorkerTiming } from '../../protocol/workers/timing.ts'
import {
  address,
  any,
  bytes,
  duration,
  each,
  fileText,
  integer,
  matching,
  natsPrefix,
  network,
  oneOf,
  origin,
  readable,
  replicas,
  secret,
  switched,
  sync,
  type Parse,
} from './parse.ts'

/** The roles that a node can have. */
export const roles = ['gateway', 'shards', 'views', 'executor'] as const
export type Role = (typeof roles)[number]
export const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

interface Setting<T> {
  /** The default text; undefined: the setting may be absent. */
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

export const table = {
  BATON_HOST: setting('127.0.0.1', any, 'Address to listen on; 0.0.0.0 for all'),
  BATON_PORT: setting('8080', integer(0, 65_535), 'Port of the HTTP interface; 0 for any free one'),
  BATON_STATUS_PORT: optional(
    integer(0, 65_535),
    'Port of /healthz, /readyz and /metrics of a node that has no gateway; absent: none',
  ),
  BATON_METRICS: setting(
    'open',
    oneOf('open', 'status'),
    'Where /metrics is answered: on every port, or on that of BATON_STATUS_PORT only',
  ),
  BATON_METRICS_TOKEN: optional(
    matching(/^[\x21-\x7e]{16,256}$/, 'must be at least 16 characters without spaces'),
    'Token that /metrics asks for (Authorization: Bearer …); absent: none',
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
  BATON_NATS_USER: optional(any, 'User name for the NATS servers'),
  BATON_NATS_PASSWORD: optional(secret(any), 'Password of that user'),
  BATON_NATS_TOKEN: optional(secret(any), 'Token for the NATS servers, instead of a user'),
  BATON_NATS_NKEY: optional(
    secret(matching(/^SU[A-Z2-7]{56}$/, 'must be the seed of a user, which begins with SU')),
    'Seed of the key pair that the NATS servers know the public key of',
  ),
  BATON_NATS_CREDS: optional(
    fileText,
    'Credentials file (.creds) of a user of NATS servers in operator mode',
  ),
  BATON_NATS_CA: optional(
    readable,
    'File with the certificate authority of the NATS servers (PEM); a connection without TLS is then refused',
  ),
  BATON_NATS_CERT: optional(readable, 'File with the certificate of this client (PEM)'),
  BATON_NATS_KEY: optional(readable, 'File with the key of that certificate (PEM)'),
  BATON_NATS_DOMAIN: optional(
    matching(/^[A-Za-z0-9_-]{1,64}$/, 'must be up to 64 letters, digits, - or _'),
    'JetStream domain of the streams, when it is not that of the NATS servers',
  ),
  BATON_NATS_PREFIX: optional(
    natsPrefix,
    'What subjects, streams and buckets begin with, so that several installations share NATS servers; the same on all nodes, fixed once the store exists',
  ),
  BATON_SYNC: setting(
    'always',
    sync,
    'When the NATS server beside this process writes to disk: before it acknowledges, or every so often',
  ),
  BATON_NATS_MAX_STORE: optional(
    bytes,
    'Size that the store of the NATS server beside this process may reach on the disk, such as 20GiB; absent: 90 % of the disk that it has',
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
    DEFAULT_BRAND,
    matching(/^[A-Za-z][A-Za-z0-9]{0,31}$/, 'must be letters and digits, beginning with a letter'),
    'Name in headers (X-<Brand>-…) and, in lower case, in permissions; set, also the name in pages and documents, which is Baton otherwise',
  ),
  BATON_KEY_PREFIX: setting(
    'bat',
    matching(/^[a-z][a-z0-9]{0,15}$/, 'must be lower-case letters and digits'),
    'What API keys begin with',
  ),
  BATON_RUN_LIST: setting(
    'both',
    oneOf('both', 'items', 'data'),
    'Names under which lists of runs have their array; one of them suits clients that refuse members they do not know',
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
    'Mail server for e-mail about interactions: those whose delivery names addresses, and all of projects with email_notifications; smtps:// begins with TLS, ?requireTLS=true insists on it; absent: off',
  ),
  BATON_NOTIFY_FROM: optional(
    matching(
      /^[^\s<>@]+@[^\s<>@]+$|^[^<>\r\n]+ <[^\s<>@]+@[^\s<>@]+>$/,
      'must be an address such as baton@example.org, or with a name: Baton <baton@example.org>',
    ),
    'Sender of that e-mail',
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
  BATON_SMTP_PORT: optional(
    integer(0, 65_535),
    'Port on which a gateway takes e-mail for agents; absent: none is taken. Needs BATON_INBOX_DOMAIN',
  ),
  BATON_SMTP_HOST: setting('127.0.0.1', any, 'Address on which e-mail is taken; 0.0.0.0 for all'),
  BATON_SMTP_DNS: setting(
    '',
    each(matching(/^[0-9a-f.:[\]]+$/i, 'must be addresses such as 10.0.0.2 or 10.0.0.2:53')),
    'DNS servers that are asked for SPF, DKIM and DMARC records, comma-separated; empty: those of this machine',
  ),
  BATON_SMTP_TLS_CERT: optional(
    any,
    'File with the certificate chain (PEM) for STARTTLS on the e-mail port',
  ),
  BATON_SMTP_TLS_KEY: optional(any, 'File with the private key (PEM) of that certificate'),
  BATON_SMTP_MAX_BYTES: setting(
    '10485760',
    integer(1024, 104_857_600),
    'Largest e-mail message that is taken, in bytes',
  ),
  BATON_PLAN_CONCURRENCY: setting(
    '0',
    integer(0, 100_000),
    'Runs of loops that may be under way in the whole installation, the same on all nodes; the others wait. 0 for no limit',
  ),
  BATON_TRIGGERED_RUNS: setting(
    String(defaultTriggerLimits.per_root),
    integer(1, 1_000_000),
    'Runs that triggers start for one event and for all events that these runs cause; a loop whose triggers would start more is paused',
  ),
  BATON_TRIGGERED_RUNS_PER_MINUTE: setting(
    String(defaultTriggerLimits.per_minute),
    integer(1, 1_000_000),
    'Runs of one loop that triggers start in a minute for events that runs caused; past it the loop is paused',
  ),
  BATON_MAX_KEYS: setting(
    '10000',
    integer(10, 100_000),
    'Keys and tokens of a project, and keys of the organization, that are not revoked; the same on all nodes',
  ),
  BATON_MAX_PRINCIPALS: setting(
    '10000',
    integer(10, 100_000),
    'People and services of a project; the same on all nodes',
  ),
  BATON_NODE_ID: optional(
    matching(/^[A-Za-z0-9_-]{1,64}$/, 'must be up to 64 letters, digits, - or _'),
    'Name of this node, unique in the installation; random when absent',
  ),
} as const
export type Name = keyof typeof table
export const settingNames = Object.keys(table) as Name[]
export type Values = { [N in Name]: (typeof table)[N] extends Setting<infer T> ? T : never }

/** Settings whose values are secrets. */
export const secrets: ReadonlySet<Name> = new Set([
  'BATON_ROOT_KEY',
  'BATON_NATS_PASSWORD',
  'BATON_NATS_TOKEN',
  'BATON_NATS_NKEY',
  'BATON_METRICS_TOKEN',
  'BATON_NOTIFY_SECRET',
  'BATON_NOTIFY_SMTP',
])
export const flagOf = (name: Name): string =>
  `--${name.slice('BATON_'.length).toLowerCase().replaceAll('_', '-')}`
export const byFlag = new Map(settingNames.map((name) => [flagOf(name), name]))
