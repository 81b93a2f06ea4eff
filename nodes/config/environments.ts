/**
 * The settings of environments: the providers of the installation, the providers that this node
 * runs, and the limits of an environment.
 */
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { readJson, schemaFault } from './json.ts'
import { bytes, duration, each, integer, matching, type Parse, url } from './parse.ts'
import { optional, setting, type ValuesOf } from './setting.ts'

const NAME = '[a-z][a-z0-9_-]{0,63}'
/** Pattern of the hosts in URLs that refer to this machine. */
const LOOPBACK = '(localhost|127(\\.\\d{1,3}){3}|\\[::1\\])'
const PROVIDER_URL = `^(https://[^\\s?#]+|http://${LOOPBACK}(:\\d+)?(/[^\\s?#]*)?)$`
const SECRET = '^[\\x21-\\x7e]{16,512}$'
/** What a text must be, by the pattern that it must match. */
const sentences = {
  [PROVIDER_URL]: 'must be an https URL without a query, or an http URL of this machine',
  [SECRET]: 'must be 16 to 512 ASCII characters without spaces',
}
const HttpProvider = Type.Object(
  {
    name: Type.String({ pattern: `^${NAME}$` }),
    url: Type.String({
      pattern: PROVIDER_URL,
      maxLength: 2048,
    }),
    secret: Type.String({ pattern: SECRET }),
    gateway_url: Type.Optional(Type.String({ pattern: '^https?://[^\\s?#]*[^\\s?#/]$' })),
  },
  { additionalProperties: false },
)
/**
 * A provider outside of Baton: its URL, the secret that authenticates requests to it, and the URL
 * at which its workers reach a gateway. Requests contain credentials of workers, so the URL of a
 * provider on another machine must use TLS.
 */
export type HttpProvider = Static<typeof HttpProvider>

/** Limits of one environment. */
export interface EnvironmentLimits {
  readonly memory_bytes: number
  /** Number of processors; may be a fraction. */
  readonly cpus: number
  readonly disk_bytes: number
  readonly processes: number
}
interface DockerConfig {
  /** Path of the engine's Unix socket. */
  readonly socket: string
  readonly image: string
  /** Network mode of containers. The default is that of the engine. */
  readonly network?: string
  /** Command of the worker in the image. The default is the program of this installation. */
  readonly command?: readonly string[]
}
export interface EnvironmentConfig {
  /** The names of the providers. A node with the role `hosts` runs these providers. */
  readonly providers: readonly string[]
  /** The provider of environments for which the client specifies no provider. */
  readonly default_provider: string
  /** The provider for each alternative name that clients may use. */
  readonly aliases: Readonly<Record<string, string>>
  readonly http_providers: readonly HttpProvider[]
  readonly docker: DockerConfig
  /** Whether the provider `local` may run workers without isolation. */
  readonly unsafe_local: boolean
  /**
   * URL at which this node reaches a gateway. The default is the URL of the node's own gateway, or
   * the public URL if the node has no gateway.
   */
  readonly gateway_url?: string
  readonly limits: EnvironmentLimits
  /** Milliseconds within which a worker must connect after its start was requested. */
  readonly wake_ms: number
  /** Milliseconds within which a host must begin to prepare an environment. */
  readonly provision_ms: number
  /** Milliseconds after which the retained environment of a run is destroyed; 0 means never. */
  readonly retain_ms: number
  /** Maximum number of environments on this host, and of concurrent operations. */
  readonly host: { readonly environments: number; readonly operations: number }
}

/** Returns the provider settings that gateways use: only names, no secrets. */
export const providerNames = ({ default_provider, providers, aliases }: EnvironmentConfig) => ({
  default_provider,
  providers,
  aliases,
})

const wrong = (sentence: string) => ({ wrong: sentence })
const toggle: Parse<boolean> = (text) =>
  /^(on|true|1|yes)$/i.test(text) ||
  (!/^(off|false|0|no)$/i.test(text) && wrong('must be on or off'))
const provider = matching(
  new RegExp(`^${NAME}$`),
  'must be names of providers such as local, comma-separated',
)
const alias = matching(
  new RegExp(`^${NAME}=${NAME}$`),
  'must be pairs such as sprites=local, comma-separated',
)
const cpus: Parse<number> = (text) =>
  /^\d{1,4}(\.\d{1,3})?$/.test(text) && Number(text) >= 0.1 && Number(text) <= 1024
    ? Number(text)
    : wrong('must be a number of processors from 0.1 to 1024')
const words: Parse<readonly string[]> = (text) =>
  /^[\w./:@=+-]+( [\w./:@=+-]+)*$/.test(text)
    ? text.split(' ')
    : wrong('must be a command such as baton environment-worker')
const httpProviders: Parse<readonly HttpProvider[]> = (text) => {
  const read = readJson(text)
  if ('wrong' in read) return read
  const { value } = read
  const Providers = Type.Array(HttpProvider, { maxItems: 100 })
  if (Value.Check(Providers, value)) {
    for (const { name, url: address, gateway_url = address } of value)
      if (!URL.canParse(address) || !URL.canParse(gateway_url))
        return wrong(`has a URL that cannot be parsed, in the provider ${name}`)
    const names = value.map(({ name }) => name)
    return names.some((name, i) => builtIn.includes(name) || names.indexOf(name) !== i)
      ? wrong(`needs different names, other than ${builtIn.join(', ')}`)
      : value
  }
  return schemaFault(Providers, value, sentences)
}
const retention: Parse<number> = (text) =>
  text === '0' ? 0 : duration(1, 60_000, 366 * 24 * 3_600_000)(text)
/** Names that no HTTP provider may have. */
const builtIn: readonly string[] = ['local', 'docker', 'worker']

export const environmentTable = {
  BATON_PROVIDERS: setting(
    'local',
    each(provider),
    'Providers of environments, comma-separated: local, docker, names of BATON_HTTP_PROVIDERS. ' +
      'On a gateway, those of the installation; on a host, those that it runs',
  ),
  BATON_PROVIDER_DEFAULT: optional(
    provider,
    'Provider of environments that name none; by default the first of BATON_PROVIDERS. ' +
      'The same on all nodes',
  ),
  BATON_PROVIDER_ALIASES: setting(
    '',
    each(alias),
    'Provider names that clients may use for others, such as sprites=docker, comma-separated; ' +
      'sprites and cloudflare_containers are the default provider unless set. ' +
      'The same on all gateways and shard nodes',
  ),
  BATON_HTTP_PROVIDERS: optional(
    httpProviders,
    'Providers outside of Baton (name, url and secret of each, and gateway_url if needed), ' +
      'as JSON or the path of a JSON file',
  ),
  BATON_DOCKER_SOCKET: setting(
    '/var/run/docker.sock',
    matching(/^\/[^\0]+$/, 'must be the absolute path of a Unix socket'),
    'Unix socket of the Docker or Podman API, for the provider docker',
  ),
  BATON_DOCKER_IMAGE: setting(
    'docker.io/library/node:22-bookworm',
    matching(/^[A-Za-z0-9][\w./:@-]{0,254}$/, 'must be the name of an image'),
    'Image of the provider docker; it needs Node.js 20 or newer, git and bash',
  ),
  BATON_DOCKER_NETWORK: optional(
    matching(/^[A-Za-z0-9][\w.:-]{0,127}$/, 'must be a network such as host, or its name'),
    "Network of containers of the provider docker; by default the engine's default",
  ),
  BATON_DOCKER_COMMAND: optional(
    words,
    'Command of the worker in the image of the provider docker; ' +
      'by default the program of this installation, which is mounted',
  ),
  BATON_UNSAFE_LOCAL: setting(
    'off',
    toggle,
    'Let the provider local run workers without isolation; for development only',
  ),
  BATON_GATEWAY_URL: optional(
    url(
      /^https?:\/\/[^\s?#]+[^\s?#/]$/,
      'must be a URL such as http://10.0.0.1:8080, without a trailing slash',
    ),
    'URL of a gateway as this host reaches it; ' +
      'by default the gateway of this node, otherwise BATON_PUBLIC_URL',
  ),
  BATON_ENVIRONMENT_MEMORY: setting('2GiB', bytes, 'Maximum memory of one environment'),
  BATON_ENVIRONMENT_CPUS: setting('2', cpus, 'Maximum number of processors of one environment'),
  BATON_ENVIRONMENT_DISK: setting('10GiB', bytes, 'Maximum size of the files of one environment'),
  BATON_ENVIRONMENT_PROCESSES: setting(
    '512',
    integer(16, 100_000),
    'Maximum number of processes of one environment',
  ),
  BATON_ENVIRONMENT_WAKE: setting(
    '30s',
    duration(1, 1000, 3_600_000),
    'Time in which the worker of an environment must connect after a job requested its start; ' +
      'then the job fails. The same on all nodes',
  ),
  BATON_ENVIRONMENT_PROVISION: setting(
    '5m',
    duration(1, 1000, 24 * 3_600_000),
    'Time in which a host must begin to prepare an environment. The same on all nodes',
  ),
  BATON_ENVIRONMENT_RETENTION: setting(
    '168h',
    retention,
    'Time after which the retained environment of a run is destroyed; 0 for never. ' +
      'The same on all nodes',
  ),
  BATON_HOST_LIMIT: setting(
    '100',
    integer(1, 100_000),
    'Maximum number of environments of a node with the role hosts',
  ),
  BATON_HOST_CONCURRENCY: setting(
    '8',
    integer(1, 1000),
    'Maximum number of environments that a host prepares, starts or removes at the same time',
  ),
} as const

/**
 * Returns the configuration of environments, or a message when settings contradict each other.
 * @param roles the roles of the node.
 * @param hasUrl whether the URL of a gateway is configured.
 */
export function environmentsOf(
  v: ValuesOf<typeof environmentTable>,
  roles: readonly string[],
  hasUrl: boolean,
): EnvironmentConfig | string {
  const providers = [...new Set(v.BATON_PROVIDERS)]
  const http_providers = v.BATON_HTTP_PROVIDERS ?? []
  const default_provider = v.BATON_PROVIDER_DEFAULT ?? providers[0] ?? 'local'
  const known = (name: string) => providers.includes(name)
  if (known('worker'))
    return 'BATON_PROVIDERS contains worker, whose environments are attached by workers: remove it'
  const unconfigured = providers.find(
    (name) => !builtIn.includes(name) && !http_providers.some((one) => one.name === name),
  )
  if (roles.includes('hosts') && unconfigured !== undefined)
    return `BATON_PROVIDERS contains ${unconfigured}, which is not in BATON_HTTP_PROVIDERS`
  if (roles.includes('hosts') && !roles.includes('gateway') && !hasUrl)
    return (
      'BATON_GATEWAY_URL is missing: set it to the URL of a gateway, ' +
      'which the workers of environments on this host use'
    )
  const given = v.BATON_PROVIDER_ALIASES.map((pair) => pair.split('=') as [string, string])
  if (roles.includes('gateway') && providers.length > 0) {
    if (!known(default_provider))
      return `BATON_PROVIDER_DEFAULT is ${default_provider}, which is not in BATON_PROVIDERS`
    const unknown = given.find(([, name]) => !known(name))
    if (unknown)
      return `BATON_PROVIDER_ALIASES contains ${unknown[1]}, which is not in BATON_PROVIDERS`
  }
  const aliases = Object.entries({
    sprites: default_provider,
    cloudflare_containers: default_provider,
    ...Object.fromEntries(given),
  })
  return {
    providers,
    default_provider,
    aliases: Object.fromEntries(aliases.filter(([name]) => !known(name))),
    http_providers,
    docker: {
      socket: v.BATON_DOCKER_SOCKET,
      image: v.BATON_DOCKER_IMAGE,
      ...(v.BATON_DOCKER_NETWORK !== undefined && { network: v.BATON_DOCKER_NETWORK }),
      ...(v.BATON_DOCKER_COMMAND && { command: v.BATON_DOCKER_COMMAND }),
    },
    unsafe_local: v.BATON_UNSAFE_LOCAL,
    ...(v.BATON_GATEWAY_URL !== undefined && { gateway_url: v.BATON_GATEWAY_URL }),
    limits: {
      memory_bytes: v.BATON_ENVIRONMENT_MEMORY,
      cpus: v.BATON_ENVIRONMENT_CPUS,
      disk_bytes: v.BATON_ENVIRONMENT_DISK,
      processes: v.BATON_ENVIRONMENT_PROCESSES,
    },
    wake_ms: v.BATON_ENVIRONMENT_WAKE,
    provision_ms: v.BATON_ENVIRONMENT_PROVISION,
    retain_ms: v.BATON_ENVIRONMENT_RETENTION,
    host: { environments: v.BATON_HOST_LIMIT, operations: v.BATON_HOST_CONCURRENCY },
  }
}
