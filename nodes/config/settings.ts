/** The table of settings: names, defaults, parsers and descriptions. */

import { defaultTriggerLimits } from '../../protocol/events/sources.ts'
import { DEFAULT_BRAND } from '../../protocol/naming.ts'
import { tableLimits } from '../../protocol/tables/schema.ts'
import { defaultTiming, type WorkerTiming } from '../../protocol/workers/timing.ts'
import { consoleTable } from './console.ts'
import { environmentTable } from './environments.ts'
import { logTable } from './logs.ts'
import {
  address,
  any,
  bucket,
  bytes,
  bytesOrNone,
  dnsServer,
  duration,
  each,
  fileText,
  integer,
  matching,
  natsPrefix,
  network,
  oneOf,
  origin,
  parseSwitch,
  readable,
  replicas,
  secret,
  sync,
  url,
} from './parse.ts'
import { proxyTable } from './proxies.ts'
import { optional, setting, type ValuesOf } from './setting.ts'

export const roles = ['gateway', 'shards', 'views', 'executor', 'hosts'] as const
export type Role = (typeof roles)[number]
export const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const seconds = (name: keyof WorkerTiming, description: string) =>
  setting(String(defaultTiming[name]), duration(1000, 1, 3600), `${description}, in seconds`)

export const table = {
  BATON_HOST: setting('127.0.0.1', any, 'Address to listen on; 0.0.0.0 for all addresses'),
  BATON_PORT: setting('8080', integer(0, 65_535), 'Port of the HTTP API; 0 for any free port'),
  BATON_STATUS_PORT: optional(
    integer(0, 65_535),
    'Port for /healthz, /readyz and /metrics on a node without a gateway; if absent, they are ' +
      'not served there',
  ),
  BATON_METRICS: setting(
    'open',
    oneOf('open', 'status'),
    'Where /metrics is served: on every port (open), or only on BATON_STATUS_PORT (status)',
  ),
  BATON_METRICS_TOKEN: optional(
    matching(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 characters without spaces'),
    'Bearer token required by /metrics; if absent, none is required',
  ),
  BATON_DATA: setting('.baton', any, 'Data folder of the node'),
  BATON_ROLES: setting(
    roles.join(','),
    each(oneOf(...roles)),
    'Roles of this process, comma-separated',
  ),
  BATON_VIEW_THREADS: setting(
    'auto',
    oneOf('auto', 'on', 'off'),
    'Whether views run in separate threads; auto: if the process has other roles too and more ' +
      'than one processor',
  ),
  BATON_NATS: setting(
    '',
    each(address),
    'NATS servers, comma-separated; tls:// requires TLS; if empty, an embedded NATS server is ' +
      'started',
  ),
  BATON_NATS_SERVER: optional(
    any,
    'Path of the nats-server binary; ' +
      'if absent, it is found on the PATH or in the cache, or downloaded from the Debian archive',
  ),
  BATON_NATS_PORT: setting(
    '0',
    integer(0, 65_535),
    'Port of the embedded NATS server; 0 for any free port',
  ),
  BATON_NATS_USER: optional(any, 'User name for the NATS servers'),
  BATON_NATS_PASSWORD: optional(secret(any), 'Password of the NATS user'),
  BATON_NATS_TOKEN: optional(secret(any), 'Token for the NATS servers, instead of a user name'),
  BATON_NATS_NKEY: optional(
    secret(matching(/^SU[A-Z2-7]{56}$/, 'must be an NKey seed of a user, which begins with SU')),
    'NKey seed of the NATS user',
  ),
  BATON_NATS_CREDS: optional(
    fileText,
    'Credentials file (.creds) of the NATS user, for servers in operator mode',
  ),
  BATON_NATS_CA: optional(
    readable,
    'PEM file with the certificate authority of the NATS servers; connections then require TLS',
  ),
  BATON_NATS_CERT: optional(readable, 'PEM file with the client certificate for NATS'),
  BATON_NATS_KEY: optional(readable, 'PEM file with the private key of the client certificate'),
  BATON_NATS_DOMAIN: optional(
    matching(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, - or _'),
    'JetStream domain of the streams, if it differs from the domain of the NATS servers',
  ),
  BATON_NATS_PREFIX: optional(
    natsPrefix,
    'Prefix of subjects, streams and buckets, ' +
      'so that several installations can share NATS servers; ' +
      'the same on all nodes, fixed once the store exists',
  ),
  BATON_SYNC: setting(
    'always',
    sync,
    'When the embedded NATS server syncs to disk: before each acknowledgement (always), or at ' +
      'this interval',
  ),
  BATON_NATS_MAX_STORE: optional(
    bytes,
    'Maximum size on disk of the store of the embedded NATS server, such as 20GiB; ' +
      'if absent, 90 % of the available disk space',
  ),
  BATON_PARTITIONS: setting(
    '1',
    integer(1, 64),
    'Number of journals over which projects are distributed; fixed once the store exists',
  ),
  BATON_SHARDS: setting(
    '4',
    integer(1, 64),
    'Number of shards per partition; fixed once the store exists',
  ),
  BATON_REPLICAS: setting(
    '1',
    replicas,
    'Number of replicas of each stream; more than 1 requires a NATS cluster',
  ),
  BATON_JOURNAL_FORMAT: setting(
    '3',
    oneOf('1', '2', '3'),
    'Newest format of new journal entries, if all nodes read it: 2 and 3 are compressed; ' +
      'an older one allows a downgrade to a release that reads no newer one',
  ),
  BATON_ROOT_KEY: optional(
    matching(/^[\w-]{16,200}$/, 'must be 16 to 200 letters, digits, - or _'),
    'API key of the first administrator; if absent, it is generated at the first start and ' +
      'stored in the data folder',
  ),
  BATON_BRAND: setting(
    DEFAULT_BRAND,
    matching(
      /^[A-Za-z][A-Za-z0-9]{0,31}$/,
      'must be 1 to 32 letters and digits, beginning with a letter',
    ),
    'Brand name in headers (X-<Brand>-…) and, in lower case, in permissions; ' +
      'if set, it also replaces Baton in pages and documents',
  ),
  BATON_KEY_PREFIX: setting(
    'bat',
    matching(
      /^[a-z][a-z0-9]{0,15}$/,
      'must be 1 to 16 lower-case letters and digits, beginning with a letter',
    ),
    'Prefix of API keys',
  ),
  BATON_RUN_LIST: setting(
    'both',
    oneOf('both', 'items', 'data'),
    'Name of the array in run lists: items, data, or both; a single name suits clients that ' +
      'reject unknown members',
  ),
  BATON_RATE_KEY: setting(
    '600',
    integer(0, 10_000_000),
    'Maximum number of requests per key and window; 0 for no limit',
  ),
  BATON_RATE_ORG: setting(
    '6000',
    integer(0, 100_000_000),
    'Maximum number of requests of the organization per window; 0 for no limit',
  ),
  BATON_RATE_WINDOW: setting(
    '60',
    duration(1000, 1, 3600),
    'Length of the rate limit window, in seconds',
  ),
  BATON_DEADLINE: setting(
    '15000',
    duration(1, 100, 120_000),
    'Milliseconds after which a request is answered 503; should exceed the duration of a NATS ' +
      'leader election',
  ),
  BATON_DRAIN: setting(
    '5',
    duration(1000, 0, 600),
    'Seconds after SIGTERM ' +
      'during which a gateway reports that it is not ready but still serves; ' +
      'should exceed the check interval of load balancers',
  ),
  BATON_KEEPALIVE: setting(
    '15',
    duration(1000, 1, 300),
    'Seconds between keep-alive comments on an idle event stream',
  ),
  BATON_STREAM_AGE: setting(
    '55',
    duration(1000, 1, 86_400),
    'Seconds after which a session stream ends and its client reconnects; some clients time out ' +
      'after 60',
  ),
  BATON_STREAM_IDLE: setting(
    '2',
    duration(1000, 0, 3600),
    'Seconds for which a session stream stays open without active turns',
  ),
  BATON_CORS: setting(
    '',
    each(origin),
    'Origins that browsers may call the API from (CORS), comma-separated',
  ),
  BATON_PUBLIC_URL: optional(
    url(
      /^https?:\/\/[^\s?#]+[^\s?#/]$/,
      'must be a URL such as https://baton.example.org, without a trailing slash',
    ),
    'Public base URL of the gateways, used in links; by default the URL of this gateway',
  ),
  ...proxyTable,
  BATON_NOTIFY_URL: optional(
    url(/^https?:\/\/[^\s/?#]+([/?#]\S*)?$/, 'must be an absolute http or https URL'),
    'Webhook URL that receives a message with answer links for each interaction; if absent, none ' +
      'is sent',
  ),
  BATON_NOTIFY_SECRET: optional(
    matching(/^\S{16,512}$/, 'must be 16 to 512 characters without spaces'),
    'Secret that signs the messages to BATON_NOTIFY_URL',
  ),
  BATON_NOTIFY_SMTP: optional(
    url(
      /^smtps?:\/\/[^\s/?#]+([/?#]\S*)?$/,
      'must be a URL such as smtp://user:password@mail.example.org:587',
    ),
    'SMTP server for e-mail about interactions: those whose delivery lists addresses, ' +
      'and all those of projects with email_notifications; smtps:// uses TLS from the start, ' +
      '?requireTLS=true requires STARTTLS; if absent, no e-mail is sent',
  ),
  BATON_NOTIFY_FROM: optional(
    matching(
      /^[^\s<>@]+@[^\s<>@]+$|^[^<>\r\n]+ <[^\s<>@]+@[^\s<>@]+>$/,
      'must be an e-mail address such as baton@example.org or Baton <baton@example.org>',
    ),
    'Sender of the e-mail about interactions',
  ),
  BATON_WORKER_LEASE: seconds('lease', 'Time for which a silent worker keeps its jobs'),
  BATON_WORKER_CADENCE: seconds('cadence', 'Interval of worker heartbeats'),
  BATON_WORKER_POLL: seconds('poll', 'Interval at which idle workers poll for jobs'),
  BATON_WORKER_STALE: seconds('stale', 'Silence after which a worker counts as stale'),
  BATON_WORKER_TAKEOVER: seconds(
    'takeover',
    'Time within which a lost worker connection can be resumed',
  ),
  BATON_ANONYMOUS_WORKER: setting(
    'off',
    parseSwitch('anonymous', /^\w{1,64}$/),
    'Accept workers from this machine without a key, as this principal (on: `anonymous`); for ' +
      'development only',
  ),
  BATON_OUTBOUND_ALLOW: setting(
    '',
    each(network),
    'Networks that HTTP actions, webhook deliveries, repository hosts and the definition ' +
      'resolver may use in addition to public addresses, also without TLS (except the resolver), ' +
      'such as 127.0.0.1/32,10.0.0.0/8',
  ),
  BATON_EXECUTOR_CONCURRENCY: setting(
    '64',
    integer(1, 10_000),
    'Maximum number of concurrent calls by a node with the role executor',
  ),
  BATON_LOG_LEVEL: setting('info', oneOf(...levels), 'Minimum level of log lines'),
  BATON_MODELS: setting(
    '',
    (text) => text,
    'Models of the service, as JSON or the path of a JSON file; see docs/models.md',
  ),
  BATON_INBOX_DOMAIN: optional(
    matching(
      /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/,
      'must be a domain such as agents.example.org',
    ),
    'Domain of the e-mail addresses of agents; if absent, agents have no address',
  ),
  BATON_SMTP_PORT: optional(
    integer(0, 65_535),
    'SMTP port on which a gateway receives e-mail for agents; ' +
      'if absent, no e-mail is received. Requires BATON_INBOX_DOMAIN',
  ),
  BATON_SMTP_HOST: setting(
    '127.0.0.1',
    any,
    'Address on which e-mail is received; 0.0.0.0 for all addresses',
  ),
  BATON_SMTP_DNS: setting(
    '',
    each(dnsServer),
    'DNS servers for SPF, DKIM and DMARC records, comma-separated; if empty, those of this machine',
  ),
  BATON_SMTP_TLS_CERT: optional(
    any,
    'PEM file with the certificate chain for STARTTLS on the SMTP port',
  ),
  BATON_SMTP_TLS_KEY: optional(any, 'PEM file with the private key of that certificate'),
  BATON_SMTP_MAX_BYTES: setting(
    '10485760',
    integer(1024, 104_857_600),
    'Maximum size of a received e-mail message, in bytes',
  ),
  BATON_TABLE_ROWS: setting(
    String(tableLimits.rows),
    integer(1, 100_000_000),
    'Maximum number of rows of a table; same on all nodes',
  ),
  BATON_PLAN_CONCURRENCY: setting(
    '0',
    integer(0, 100_000),
    'Maximum number of active loop runs in the installation; further runs wait. 0 for no limit. ' +
      'The same on all nodes',
  ),
  BATON_TRIGGERED_RUNS: setting(
    String(defaultTriggerLimits.per_root),
    integer(1, 1_000_000),
    'Maximum number of runs that triggers start for one event ' +
      'and all events caused by these runs; a loop that would exceed it is paused',
  ),
  BATON_TRIGGERED_RUNS_PER_MINUTE: setting(
    String(defaultTriggerLimits.per_minute),
    integer(1, 1_000_000),
    'Maximum number of runs of one loop per minute ' +
      'that triggers start for events caused by runs; a loop that would exceed it is paused',
  ),
  BATON_MAX_KEYS: setting(
    '10000',
    integer(10, 100_000),
    'Maximum number of keys and tokens of a project that are not revoked, ' +
      'and of such keys of the organization; the same on all nodes',
  ),
  BATON_MAX_PRINCIPALS: setting(
    '10000',
    integer(10, 100_000),
    'Maximum number of people and services of a project; the same on all nodes',
  ),
  BATON_ARTIFACT_QUOTA: setting(
    '10GiB',
    bytesOrNone,
    'Maximum size of all artifacts of the installation, such as 10GiB; 0 for no limit. The same ' +
      'on all nodes',
  ),
  BATON_ARTIFACTS: optional(
    bucket,
    'Where files are stored: s3://<bucket>/<prefix>, with ?region= and ?endpoint=; if absent, in ' +
      'NATS',
  ),
  BATON_ARTIFACT_MAX: setting('100MiB', bytes, 'Maximum size of one artifact, such as 100MiB'),
  BATON_ARTIFACT_UPLOAD: setting(
    '90s',
    duration(1, 3000, 3_600_000),
    'Time after which the unfinished upload of a gateway that failed is abandoned. ' +
      'A gateway renews its uploads three times as often. The same on all nodes',
  ),
  ...consoleTable,
  ...logTable,
  ...environmentTable,
  BATON_NODE_ID: optional(
    matching(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, - or _'),
    'Id of this node, unique in the installation; random if absent',
  ),
} as const
export type Name = keyof typeof table
export const settingNames = Object.keys(table) as Name[]
export type Values = ValuesOf<typeof table>

/** Settings whose values are secrets. */
export const secrets: ReadonlySet<Name> = new Set([
  'BATON_ROOT_KEY',
  'BATON_NATS_PASSWORD',
  'BATON_NATS_TOKEN',
  'BATON_NATS_NKEY',
  'BATON_METRICS_TOKEN',
  'BATON_NOTIFY_SECRET',
  'BATON_NOTIFY_SMTP',
  'BATON_HTTP_PROVIDERS',
  'BATON_OIDC_CLIENT_SECRET',
])
export const flagOf = (name: Name): string =>
  `--${name.slice('BATON_'.length).toLowerCase().replaceAll('_', '-')}`
export const byFlag = new Map(settingNames.map((name) => [flagOf(name), name]))
