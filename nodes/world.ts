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
import { backoffMs, sleep } from '../gateway/timing.ts'
import type { Kind, PlacedEntry } from '../protocol/entry.ts'
import type { LogsAnswer } from '../protocol/environments/logs.ts'
import { type Refusal, refuse } from '../protocol/errors.ts'
import { makeId } from '../protocol/ids.ts'
import type { CommandName, CommandReply, NamedCommand } from '../protocol/queries/commands.ts'
import type { AddressOf, OwnerKind, OwnerQueries, OwnerQuery } from '../protocol/queries/owners.ts'
import type { ViewQueries, ViewQueryName } from '../protocol/queries/views.ts'
import { extended } from '../protocol/rules/extended.ts'
import type { Preview, Previewed } from '../protocol/sessions/transcript/previews.ts'
import { hashOf, partitionOf, subjects } from '../protocol/subjects.ts'
import type { GatewayMessage, Offer } from '../protocol/workers/messages.ts'
import { type OwnInterest, reportedKinds } from './host/cluster/interest.ts'
import type { Membership } from './host/cluster/membership.ts'
import { answerEach } from './host/effects/pushes.ts'
import type { LocalShards } from './host/local-shards.ts'
import type { Bus, Clock, Random } from './host/ports.ts'
import { createTerminalRelay } from './nats/terminal-relay.ts'
import { OwnerRequests } from './owner-requests.ts'
import type { Embedder } from './roles/embed.ts'
import type { Question } from './roles/view.ts'
import { createSecretBox } from './storage/secret-box.ts'

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

/** Milliseconds after which an unanswered query to a view is repeated for the first time. */
const RETRY_AFTER_MS = 2000
/**
 * Initial and maximum backoff before a query that no view answered is repeated, in milliseconds.
 */
const RETRY = { first: 10, last: 250 } as const
/** Milliseconds to wait for an answer from the node that publishes the preview of a message. */
const PREVIEW_TIMEOUT_MS = 500
/** Milliseconds to wait for a host that reads a log. */
const LOGS_TIMEOUT_MS = 5000

export function createWorld(parts: WorldParts): World {
  const { bus, clock, settings, partitions } = parts
  const { deadline } = settings
  const owners = new OwnerRequests({ ...parts, deadline })
  const locks = createSecretBox(parts.secret, parts.random)

  /**
   * Start time, which distinguishes the queries of this process from those of an earlier process.
   */
  const born = clock.now()
  const offset = born - clock.elapsed()
  let queries = 0
  async function view(partition: number, query: Omit<Question, 'id'>): Promise<unknown> {
    const message: Question = extended(query, { id: `${parts.node}/${born}/${queries++}` })
    const until = clock.elapsed() + settings.deadline
    const reports = parts.interest?.settled()
    if (reports) await reports
    // After a timeout, the next attempt may take longer, because some queries read many rows.
    let timeout = RETRY_AFTER_MS
    for (let attempt = 0; ; attempt++) {
      const left = until - clock.elapsed()
      if (left <= 0) return refuse('service_unavailable', { retry_after: 1 })
      const answer = await bus.request(subjects.view(partition), message, Math.min(left, timeout))
      if (typeof answer === 'object') return answer.answer
      if (answer === 'timeout') timeout *= 2
      await sleep(clock, backoffMs(attempt, RETRY))
    }
  }

  const world: World = {
    node: parts.node,
    settings,
    now: () => clock.now(),
    monotonic: () => offset + clock.elapsed(),
    later: (ms, run) => clock.later(ms, run),
    random: (bytes) => parts.random.bytes(bytes),
    newCommandId: uniqueTexts((bytes) => parts.random.bytes(bytes)),
    hash: (text) => createHash('sha256').update(text).digest('hex'),
    seal: (text) => createHmac('sha256', parts.secret).update(text).digest(),
    ...(parts.clientAddress && { clientAddress: parts.clientAddress }),
    unreachable: parts.unreachable,
    unreachableRepository: parts.unreachableRepository,
    ...(parts.repositoryToken && { repositoryToken: parts.repositoryToken }),
    ...(parts.definitions && { definitions: parts.definitions }),
    ...(parts.provider && { provider: parts.provider }),
    ...(parts.files && { files: parts.files }),
    ...(parts.logs && { logs: parts.logs }),
    ...(parts.embedder && { embedder: parts.embedder }),
    lock: locks.lock,
    unlock: locks.unlock,
    id: (prefix, from, slot) => {
      if (from === undefined) return makeId(prefix, clock.now(), parts.random.bytes(10), slot)
      const bytes = createHmac('sha256', parts.secret).update(`id/${prefix}/${from}`).digest()
      // A derived id contains a part of a hash where a random id contains a time, because the time
      // of the first request is unknown when the request is repeated.
      return makeId(
        prefix,
        bytes.readUIntBE(16, 6),
        bytes,
        slot ?? hashOf(bytes.toString('hex')) % 1024,
      )
    },
    organization: () => parts.organization,

    command: <K extends Kind, N extends CommandName<K>>(command: NamedCommand<K, N>) =>
      owners.send(command, { type: 'command', command }) as Promise<Outcome<CommandReply<K, N>>>,
    commandRow: (command) => owners.send(command, { type: 'command', command }) as Promise<Outcome>,
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
    view: <N extends ViewQueryName>(
      project: string,
      name: N,
      input: ViewQueries[N]['input'],
      fresh?: number,
      within?: number,
    ) =>
      view(partitionOf(project, partitions), {
        name,
        project,
        input,
        ...(fresh !== undefined && { fresh }),
        ...(within !== undefined && { within }),
      }) as Promise<ViewQueries[N]['reply'] | Refusal>,
    viewRow: (project, name, input) =>
      view(partitionOf(project, partitions), { name, project, input }),
    everywhere: <N extends ViewQueryName>(name: N, input: ViewQueries[N]['input']) =>
      Promise.all(
        Array.from({ length: partitions }, (_, partition) =>
          view(partition, { name, project: parts.organization, input }),
        ),
      ) as Promise<(ViewQueries[N]['reply'] | Refusal)[]>,
    live: (project, kind, id, on) => {
      const subject = subjects.live(project, kind, id)
      const stop = bus.subscribe(subject, (message) => {
        on(message as PlacedEntry)
      })
      const forget = reportedKinds.has(kind) ? parts.interest?.follow(subject) : undefined
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
    environmentLogs: async (place, request) => {
      const answer = await bus.request(subjects.hostLogs(place), request, LOGS_TIMEOUT_MS)
      return typeof answer === 'object' ? (answer.answer as LogsAnswer) : undefined
    },
    terminals: createTerminalRelay(bus),
    forget: async (project) => {
      await parts.membership.refresh().catch(() => {})
      const gateways = parts.membership.members('gateway')
      const executors = parts.membership
        .members('executor')
        .filter(({ id }) => !gateways.some((gateway) => gateway.id === id))
      await Promise.all([
        ...gateways.map(({ id }) => forgetAt(id, id, project)),
        ...executors.map(({ id }) => forgetAt(id, subjects.executor(id), project)),
      ])
    },

    onMessage: (handler) => {
      bus.subscribe(subjects.gateway(parts.node), (message) => answerEach(message, handler))
    },
    onOffer: (project, queue, capability, handler) =>
      bus.subscribe(
        subjects.offerFilter(project, queue, capability),
        (message) => handler(message as Offer),
        subjects.offerGroup,
      ),
    demand: (project) => bus.publish(subjects.demand(project), { project }),
    fresh: () => parts.membership.fresh(),
    endedGateways: () => parts.membership.endedGateways(),
    unready: parts.unready,
    ...(parts.storage && { storage: parts.storage }),
    ...(parts.cluster && { cluster: parts.cluster }),
    metrics: parts.metrics,
    log: parts.log,
    count: parts.count,
  }

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
      if (
        !(['gateway', 'executor'] as const).some((role) =>
          parts.membership.members(role).some((member) => member.id === id),
        )
      )
        return
      await sleep(clock, 50)
    }
  }
  return world
}
