/**
 * Implements `World`, the interface of gateways, executors and hosts to the cluster, over the bus.
 * Commands and queries of actors reach the owner of the shard, even when the shard moves.
 */
import { createHash, createHmac } from 'node:crypto'
import { uniqueTexts } from '../gateway/http/hex.ts'
import type {
  Counters,
  Files,
  GatewaySettings,
  Log,
  Outcome,
  StorageReport,
  World,
} from '../gateway/ports.ts'
import { sleep } from '../gateway/timing.ts'
import type { Kind, PlacedEntry } from '../protocol/entry.ts'
import type { LogsAnswer } from '../protocol/environments/logs.ts'
import type { Refusal } from '../protocol/errors.ts'
import { makeId } from '../protocol/ids.ts'
import type { CommandName, CommandReply, NamedCommand } from '../protocol/queries/commands.ts'
import type { AddressOf, OwnerKind, OwnerQueries, OwnerQuery } from '../protocol/queries/owners.ts'
import type { ViewQueries, ViewQueryName } from '../protocol/queries/views.ts'
import type { Preview, Previewed } from '../protocol/sessions/transcript/previews.ts'
import { hashOf, partitionOf, subjects } from '../protocol/subjects.ts'
import type { GatewayMessage, Offer } from '../protocol/workers/messages.ts'
import { REPEAT_QUERY } from './host/actor-query.ts'
import { type OwnInterest, reportedKinds } from './host/cluster/interest.ts'
import type { Membership } from './host/cluster/membership.ts'
import { answerEach } from './host/effects/pushes.ts'
import type { LocalShards } from './host/local-shards.ts'
import type { Bus, Clock, Random } from './host/ports.ts'
import { createTerminalRelay } from './nats/terminal-relay.ts'
import { OwnerRequests } from './owner-requests.ts'
import type { Embedder } from './roles/embed.ts'
import { createSecretBox } from './storage/secret-box.ts'
import { ViewRequests } from './view-requests.ts'

/**
 * Dependencies of the `World`. `secret` is the secret of the installation, for seals, derived ids
 * and encryption; `organization` is the id of the organization.
 */
export interface WorldParts {
  readonly node: string
  readonly settings: GatewaySettings
  readonly partitions: number
  readonly shards: number
  readonly secret: Uint8Array
  readonly organization: string
  readonly bus: Bus
  /** The shards that this process serves. If absent, all shards are reached over the bus. */
  readonly local?: LocalShards | undefined
  readonly files?: Files
  readonly logs?: World['logs']
  /** Absent if no embedding model is configured. */
  readonly embedder?: Pick<Embedder, 'model' | 'query'>
  readonly clock: Clock
  readonly random: Random
  readonly membership: Membership
  /** Reports to owners what this process follows; absent if it follows no runs and sessions. */
  readonly interest?: Pick<OwnInterest, 'follow' | 'settled'>
  readonly log: Log
  readonly count: Counters
  readonly clientAddress?: World['clientAddress']
  unreachable(url: string): Promise<string | undefined>
  unreachableRepository(url: string): Promise<string | undefined>
  readonly repositoryToken?: World['repositoryToken']
  readonly definitions?: World['definitions']
  readonly provider?: World['provider']
  unready(): Promise<readonly string[]>
  storage?(): StorageReport
  readonly cluster?: World['cluster']
  metrics(): Promise<string>
}

/** Returns the ids of the live nodes with views. */
const liveViews = ({ membership }: WorldParts): readonly string[] =>
  membership.members('views').map(({ id }) => id)

/** Milliseconds to wait for an answer from the node that publishes the preview of a message. */
const PREVIEW_TIMEOUT_MS = 500
/** Milliseconds to wait for a host that reads a log. */
const LOGS_TIMEOUT_MS = 5000

export function createWorld(parts: WorldParts): World {
  const { node, settings, bus, clock, membership } = parts
  const { deadline } = settings
  return {
    node,
    settings,
    ...identityOf(parts),
    ...actorPorts(new OwnerRequests({ ...parts, deadline })),
    ...viewPorts(parts, new ViewRequests({ ...parts, deadline, nodes: () => liveViews(parts) })),
    ...streamPorts(parts),
    ...gatewayPorts(parts),
    ...configuredPorts(parts),
    later: (ms, run) => clock.later(ms, run),
    terminals: createTerminalRelay(bus),
    environmentLogs: async (place, request) => {
      const answer = await bus.request(subjects.hostLogs(place), request, LOGS_TIMEOUT_MS)
      return typeof answer === 'object' ? (answer.answer as LogsAnswer) : undefined
    },
    unreachable: parts.unreachable,
    unreachableRepository: parts.unreachableRepository,
    fresh: () => membership.fresh(),
    endedGateways: () => membership.endedGateways(),
    unready: parts.unready,
    metrics: parts.metrics,
    log: parts.log,
    count: parts.count,
  }
}

/** Times, random values, ids, seals and encryption. */
function identityOf({ clock, random, secret, organization }: WorldParts) {
  const offset = clock.now() - clock.elapsed()
  const { lock, unlock } = createSecretBox(secret, random)
  return {
    now: () => clock.now(),
    monotonic: () => offset + clock.elapsed(),
    random: (bytes) => random.bytes(bytes),
    newCommandId: uniqueTexts((bytes) => random.bytes(bytes)),
    hash: (text) => createHash('sha256').update(text).digest('hex'),
    seal: (text) => createHmac('sha256', secret).update(text).digest(),
    lock,
    unlock,
    id: (prefix, from, slot) => {
      if (from === undefined) return makeId(prefix, clock.now(), random.bytes(10), slot)
      const bytes = createHmac('sha256', secret).update(`id/${prefix}/${from}`).digest()
      // A derived id contains a part of a hash where a random id contains a time, because the time
      // of the first request is unknown when the request is repeated.
      return makeId(
        prefix,
        bytes.readUIntBE(16, 6),
        bytes,
        slot ?? hashOf(bytes.toString('hex')) % 1024,
      )
    },
    organization: () => organization,
  } satisfies Partial<World>
}

/** Commands to actors and queries of actors. */
function actorPorts(owners: OwnerRequests) {
  return {
    command: <K extends Kind, N extends CommandName<K>>(command: NamedCommand<K, N>) =>
      owners.send(command, { type: 'command', command }) as Promise<Outcome<CommandReply<K, N>>>,
    commandRow: (command) => owners.send(command, { type: 'command', command }) as Promise<Outcome>,
    repeated: async ({ project, kind, id, command_id, fingerprint }) => {
      const to = { project, kind, id }
      const input = { command_id, ...(fingerprint !== undefined && { fingerprint }) }
      const answer = await owners.send(to, { type: 'ask', to, name: REPEAT_QUERY, input })
      // An owner that runs an older release does not know the query.
      if ('refused' in answer) return answer.refused === 'internal' ? undefined : answer
      return (answer as { readonly reply?: { readonly reply: unknown } }).reply
    },
    ask: async <K extends OwnerKind, N extends keyof OwnerQueries[K] & string>(
      to: AddressOf<K>,
      name: N,
      input: OwnerQuery<K, N>['input'],
    ) => {
      const answer = await owners.send(to, { type: 'ask', to, name, input })
      // An answer without `refused` is a reply, even if it has no `reply`: the JSON of an answer
      // from another process omits an undefined reply.
      return 'refused' in answer
        ? answer
        : ((answer as { readonly reply?: unknown }).reply as OwnerQuery<K, N>['reply'])
    },
  } satisfies Partial<World>
}

/** Queries of views. */
function viewPorts({ partitions, organization }: WorldParts, views: ViewRequests) {
  return {
    view: <N extends ViewQueryName>(
      project: string,
      name: N,
      input: ViewQueries[N]['input'],
      fresh?: number,
      within?: number,
    ) =>
      views.send(partitionOf(project, partitions), {
        name,
        project,
        input,
        ...(fresh !== undefined && { fresh }),
        ...(within !== undefined && { within }),
      }) as Promise<ViewQueries[N]['reply'] | Refusal>,
    viewRow: (project, name, input) =>
      views.send(partitionOf(project, partitions), { name, project, input }),
    everywhere: <N extends ViewQueryName>(name: N, input: ViewQueries[N]['input']) =>
      Promise.all(
        Array.from({ length: partitions }, (_, partition) =>
          views.send(partition, { name, project: organization, input }),
        ),
      ) as Promise<(ViewQueries[N]['reply'] | Refusal)[]>,
  } satisfies Partial<World>
}

/** Live entries and previews. */
function streamPorts({ bus, interest }: WorldParts) {
  return {
    live: (project, kind, id, on) => {
      const subject = subjects.live(project, kind, id)
      const stop = bus.subscribe(subject, (message) => {
        on(message as PlacedEntry)
      })
      const forget = reportedKinds.has(kind) ? interest?.follow(subject) : undefined
      return () => {
        stop()
        forget?.()
      }
    },
    moved: (project, on) =>
      bus.subscribe(subjects.moved(project), (message) => {
        on((message as { cursor: number }).cursor)
      }),
    preview: (project, session, previews) =>
      bus.publish(subjects.preview(project, session), previews),
    // Nodes of older releases send each chunk separately.
    onPreview: (project, session, on) =>
      bus.subscribe(subjects.preview(project, session), (message) => {
        on(Array.isArray(message) ? message : [message as Preview])
      }),
    previewed: async (project, message) => {
      const answer = await bus.request(subjects.previewed(project, message), {}, PREVIEW_TIMEOUT_MS)
      return typeof answer === 'object' ? (answer.answer as Previewed) : undefined
    },
    onPreviewed: (project, message, answer) =>
      bus.subscribe(subjects.previewed(project, message), () => answer()),
  } satisfies Partial<World>
}

/** Messages to gateways and executors. */
function gatewayPorts({ node, bus, clock, membership }: WorldParts) {
  /**
   * Asks a node to drop a project from its cache. Repeats the request until the node has dropped
   * the project, or is dead. A dead node answers no requests, and a disconnected node does not use
   * its cache, because its lease is stale. An executor caches the same data as a gateway, and
   * shares its cache with a gateway in the same process.
   */
  async function forgetAt(id: string, mailbox: string, project: string): Promise<void> {
    const message: GatewayMessage = { type: 'forget', project }
    for (;;) {
      const answer = await bus.request(subjects.gateway(mailbox), message, 1000)
      if (typeof answer === 'object') return
      const isMember = (['gateway', 'executor'] as const).some((role) =>
        membership.members(role).some((member) => member.id === id),
      )
      if (!isMember) return
      await sleep(clock, 50)
    }
  }
  return {
    forget: async (project) => {
      await membership.refresh().catch(() => {})
      const gateways = membership.members('gateway')
      const executors = membership
        .members('executor')
        .filter(({ id }) => !gateways.some((gateway) => gateway.id === id))
      await Promise.all([
        ...gateways.map(({ id }) => forgetAt(id, id, project)),
        ...executors.map(({ id }) => forgetAt(id, subjects.executor(id), project)),
      ])
    },
    onMessage: (handler) => {
      bus.subscribe(subjects.gateway(node), (message) => answerEach(message, handler))
    },
    onOffer: (project, queue, capability, handler) =>
      bus.subscribe(
        subjects.offerFilter(project, queue, capability),
        (message) => handler(message as Offer),
        subjects.offerGroup,
      ),
    demand: (project) => bus.publish(subjects.demand(project), { project }),
  } satisfies Partial<World>
}

/** The ports that depend on the configuration of the node. */
const configuredPorts = ({
  clientAddress,
  repositoryToken,
  definitions,
  provider,
  files,
  logs,
  embedder,
  storage,
  cluster,
}: WorldParts): Partial<World> => ({
  ...(clientAddress && { clientAddress }),
  ...(repositoryToken && { repositoryToken }),
  ...(definitions && { definitions }),
  ...(provider && { provider }),
  ...(files && { files }),
  ...(logs && { logs }),
  ...(embedder && { embedder }),
  ...(storage && { storage }),
  ...(cluster && { cluster }),
})
