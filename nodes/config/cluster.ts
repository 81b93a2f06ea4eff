/**
 * The settings of `baton cluster`: which settings it accepts, and those that its nodes receive.
 */
import { type Config, readConfig } from '../config.ts'
import { readFlags } from './flags.ts'
import { flagOf, type Name, settingNames } from './settings.ts'

const SERVERS = 'the cluster starts three NATS servers and connects its nodes to them'
/** The settings that a cluster does not accept, each with the reason. */
const unavailable: Readonly<Partial<Record<Name, string>>> = {
  BATON_ROLES: 'the cluster starts nodes for all roles',
  BATON_REPLICAS: 'the cluster stores three replicas of each stream',
  BATON_NODE_ID: 'the cluster has several nodes, and each has a separate id',
  BATON_NATS: SERVERS,
  BATON_NATS_PORT: 'the cluster selects free ports for its three NATS servers',
  BATON_NATS_USER: SERVERS,
  BATON_NATS_PASSWORD: SERVERS,
  BATON_NATS_TOKEN: SERVERS,
  BATON_NATS_NKEY: SERVERS,
  BATON_NATS_CREDS: SERVERS,
  BATON_NATS_CA: SERVERS,
  BATON_NATS_CERT: SERVERS,
  BATON_NATS_KEY: SERVERS,
  BATON_NATS_DOMAIN: SERVERS,
  BATON_NATS_MAX_STORE: 'it limits only the store of an embedded NATS server',
}
/** Returns whether `baton cluster` accepts a setting. */
export const clusterAccepts = (name: string): boolean => !Object.hasOwn(unavailable, name)

/** The roles of the nodes. */
const nodes = {
  'shards-1': 'shards',
  'shards-2': 'shards',
  'views-1': 'views,executor',
  'gateway-1': 'gateway,hosts',
  'gateway-2': 'gateway',
} as const
export type ClusterNode = keyof typeof nodes
const names = Object.keys(nodes) as ClusterNode[]
const gateways = names.filter((name) => nodes[name].includes('gateway'))

const MAX_PORT = 65_535

/**
 * Returns the environment variables of one node: its roles and its ports. For each port, the first
 * node that listens uses the port that is given, and each further node uses the next one. Port 0
 * stays 0.
 */
export function nodeSettings(
  { port, status_port, mail }: Pick<Config, 'port' | 'status_port' | 'mail'>,
  name: ClusterNode,
): Readonly<Record<string, string>> {
  const from = (first: number, among: readonly ClusterNode[]): string =>
    String(first === 0 ? 0 : first + Math.max(0, among.indexOf(name)))
  return {
    BATON_ROLES: nodes[name],
    BATON_PORT: gateways.includes(name) ? from(port, gateways) : '0',
    ...(status_port !== undefined && { BATON_STATUS_PORT: from(status_port, names) }),
    ...(mail && { BATON_SMTP_PORT: from(mail.port, gateways) }),
  }
}

export interface ClusterConfig {
  readonly config: Config
  /** Environment variables for all nodes. They replace those of this process. */
  readonly variables: Readonly<Record<string, string>>
  /** Environment variables of this process that the cluster ignores, and why, as sentences. */
  readonly remarks: readonly string[]
}

/**
 * Reads the settings of a cluster. A flag that it does not accept is a fault. A variable that it
 * does not accept is ignored, because it may be intended for other commands.
 * @param argv flags, without program and subcommand.
 */
export function readClusterConfig(
  env: Readonly<Record<string, string | undefined>>,
  argv: readonly string[],
): ClusterConfig | { readonly faults: readonly string[] } {
  const flags = readFlags(argv, [])
  const refused = settingNames.flatMap((name) =>
    flags.has(name) && unavailable[name] !== undefined
      ? [`${flagOf(name)} cannot be used with baton cluster: ${unavailable[name]}`]
      : [],
  )
  if (refused.length > 0) return { faults: refused }
  const ignored = settingNames.filter((name) => env[name] && unavailable[name] !== undefined)
  const read = readConfig(
    Object.fromEntries(Object.entries(env).filter(([name]) => clusterAccepts(name))),
    argv,
  )
  if ('faults' in read) return read
  const variables: Record<string, string> = {
    // The processes of one machine are stopped together, so no load balancer has to react.
    ...(!env['BATON_DRAIN'] && { BATON_DRAIN: '0' }),
    ...(!env['BATON_LOG_LEVEL'] && { BATON_LOG_LEVEL: 'warn' }),
    ...Object.fromEntries(flags),
    ...Object.fromEntries(ignored.map((name) => [name, ''])),
  }
  const { port, status_port = 0, mail } = read.config
  const faults = (
    [
      ['BATON_PORT', port, gateways],
      ['BATON_STATUS_PORT', status_port, names],
      ['BATON_SMTP_PORT', mail?.port ?? 0, gateways],
    ] as const
  ).flatMap(([name, first, users]) => {
    const highest = MAX_PORT - users.length + 1
    return first > highest
      ? [
          `${flags.has(name) ? flagOf(name) : name} is ${first}: it must be at most ${highest}, ` +
            `because ${users.length} nodes of the cluster use this port and the following ones`,
        ]
      : []
  })
  if (faults.length > 0) return { faults }
  return {
    config: read.config,
    variables,
    remarks: ignored.map((name) => `${name} is ignored: ${unavailable[name]}`),
  }
}
