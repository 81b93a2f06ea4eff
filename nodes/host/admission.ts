/**
 * Checks the messages that a shard receives from the bus. If the NATS servers enforce permissions
 * (docs/adr/0001-nats-credentials.md), only shard nodes, gateways, executors and hosts can send to
 * a shard. A message must be well-formed and addressed to this shard, because a decision about an
 * actor of another shard would give that actor two histories.
 */
import type { Address, Command } from '../../protocol/entry.ts'
import { partitionOf, shardOf } from '../../protocol/subjects.ts'
import type { HostDeps, ShardMessage } from './deps.ts'

/** The partition and number of a shard, and the total numbers of partitions and shards. */
export interface ShardPlace {
  readonly partition: number
  readonly shard: number
  readonly partitions: number
  readonly shards: number
}
type Unknown = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Unknown => typeof value === 'object' && value !== null

/**
 * Returns whether an actor belongs to this shard: its slot maps to the shard, and its project to
 * the partition.
 */
const livesHere = (
  { project, kind, id }: Unknown,
  { partition, shard, partitions, shards }: ShardPlace,
): boolean =>
  typeof project === 'string' &&
  typeof kind === 'string' &&
  typeof id === 'string' &&
  shardOf(kind, id, shards) === shard &&
  partitionOf(project, partitions) === partition

/** Returns whether a command has an origin with a time and a principal. */
const hasOrigin = ({ origin }: Unknown): boolean =>
  isObject(origin) &&
  typeof origin['at'] === 'number' &&
  isObject(origin['principal']) &&
  typeof origin['principal']['type'] === 'string' &&
  typeof origin['principal']['id'] === 'string'

const isCommand = (value: unknown, place: ShardPlace): boolean =>
  isObject(value) &&
  typeof value['name'] === 'string' &&
  typeof value['command_id'] === 'string' &&
  hasOrigin(value) &&
  livesHere(value, place)

/**
 * Returns whether a message is a well-formed command, list of commands or query for actors of this
 * shard.
 */
export function isForShard(message: unknown, place: ShardPlace): message is ShardMessage {
  if (!isObject(message)) return false
  switch (message['type']) {
    case 'command':
      return isCommand(message['command'], place)
    case 'commands':
      return (
        Array.isArray(message['commands']) &&
        message['commands'].every((command) => isCommand(command, place))
      )
    case 'ask':
      return (
        typeof message['name'] === 'string' &&
        isObject(message['to']) &&
        livesHere(message['to'], place)
      )
    default:
      return false
  }
}

/** Returns up to three addresses from a rejected message, for the log. */
export function namedBy(message: unknown): readonly Partial<Address>[] {
  if (!isObject(message)) return []
  return [message['command'], message['to'], message['commands']]
    .flat()
    .filter(isObject)
    .slice(0, 3)
    .map(({ project, kind, id }) => ({ project, kind, id }) as Partial<Command>)
}

/** Returns whether a message is for a shard (`isForShard`). Logs the message if it is not. */
export function admitMessage(
  message: unknown,
  { partition, shard }: Pick<ShardPlace, 'partition' | 'shard'>,
  { partitions, shards, log }: Pick<HostDeps, 'partitions' | 'shards' | 'log'>,
): message is ShardMessage {
  if (isForShard(message, { partition, shard, partitions, shards })) return true
  log.warn(
    { event: 'shard_message_refused', shard: `${partition}.${shard}`, actors: namedBy(message) },
    'shard message refused',
  )
  return false
}
