/** The edge's world over the bus: commands and reads find the owner of a shard, however often it moves. */
import { createHash, createHmac } from 'node:crypto'
import type {
  Counters,
  GatewaySettings,
  Log,
  Outcome,
  StorageReport,
  World,
} from '../gateway/ports.ts'
import type { Address, Command, Placed } from '../protocol/entry.ts'
import { refuse } from '../protocol/errors.ts'
import { makeId } from '../protocol/ids.ts'
import type { Preview, Previewed } from '../protocol/sessions/transcript/previews.ts'
import { hashOf, partitionOf, shardOf, subjects } from '../protocol/subjects.ts'
import type { GatewayMessage, Offer } from '../protocol/workers/socket.ts'
import { OwnerProbe } from './observe/owner-probe.ts'
import type { ShardAnswer, ShardMessage } from './host/deps.ts'
import type { Membership } from './host/cluster/membership.ts'
import type { Blobs, Bus, Clock, Random } from './host/ports.ts'
import { createSecretBox } from './storage/secret-box.ts'

/** What the world is made of. `secret` seals cursors and derived ids; `organization` is its id. */
export interface WorldParts {
  readonly node: string
  readonly settings: GatewaySettings
  readonly partitions: number
  readonly shards: number
  readonly secret: Uint8Array
  readonly organization: string
  readonly bus: Bus
  readonly blobs: Blobs
  readonly clock: Clock
  readonly random: Random
  readonly membership: Membership
  readonly log: Log
  readonly count: Counters
  unreachable(url: string): Promise<string | undefined>
  unready(): Promise<readonly string[]>
  storage?(): StorageReport
  metrics(): Promise<string>
}

/** A message that is sent again: its actor may exist by now. */
function repeated(message: ShardMessage): ShardMessage {
  if (message.type !== 'command' || !message.command.born) return message
  const { born: _, ...command } = message.command
  return { type: 'command', command }
}

/** Milliseconds after which a command or read is sent again: longer than a commit takes, short enough that a dead owner is left soon. */
const TRY = 2000
/** Milliseconds for which whoever shows a row growing is waited for. */
const SHOWN = 500

export function createWorld(parts: WorldParts): World {
  const { bus, clock, settings, partitions, shards } = parts
  const ownerProbe = new OwnerProbe(clock, parts.random)
  const locks = createSecretBox(parts.secret, parts.random)
  const sleep = (ms: number) => new Promise<void>((done) => clock.later(ms, done))

  /** Ask the owner of a shard until it answers or the deadline has passed. Whoever was asked before may still answer. */
  function owner(to: Address, message: ShardMessage): Promise<ShardAnswer> {
    const shard = shardOf(to.kind, to.id, shards)
    if (shard === undefined) return Promise.resolve(refuse('not_found'))
    const subject = subjects.shard(partitionOf(to.project, partitions), shard)
    const until = clock.elapsed() + settings.deadline
    return new Promise((resolve) => {
      let tries = 0
      let over = false
      let cancel = () => {}
      const end = (answer: ShardAnswer) => {
        over = true
        cancel()
        resolve(answer)
      }
      const later = (ms: number, run: () => void) => {
        cancel()
        cancel = clock.later(ms, run)
      }
      const late = () => end(refuse('service_unavailable', { retry_after: 1 }))
      const wait = () => {
        const leave = ownerProbe.wait(subject, () => void send())
        later(Math.max(0, until - clock.elapsed()), late)
        const stop = cancel
        cancel = () => {
          leave()
          stop()
        }
      }
      const send = async (): Promise<void> => {
        const left = until - clock.elapsed()
        if (left < 1) return late()
        const mine = ++tries
        later(Math.min(left, TRY), () => void send())
        const answer = await bus.request(subject, mine === 1 ? message : repeated(message), left)
        if (over) return
        if (typeof answer === 'object') {
          const given = answer.answer as ShardAnswer
          if (!('not_owner' in given)) {
            ownerProbe.answered(subject)
            return end(given)
          }
        }
        // The last one to be asked does not own it, or nobody is there.
        if (mine === tries) wait()
      }
      if (ownerProbe.isProbing(subject)) wait()
      else void send()
    })
  }

  async function view(partition: number, message: unknown): Promise<unknown> {
    const until = clock.elapsed() + settings.deadline
    for (let attempt = 0; ; attempt++) {
      const left = until - clock.elapsed()
      if (left <= 0) return refuse('service_unavailable', { retry_after: 1 })
      const answer = await bus.request(subjects.view(partition), message, Math.min(left, TRY))
      if (typeof answer === 'object') return answer.answer
      await sleep(Math.min(250, 10 * 2 ** Math.min(attempt, 5)))
    }
  }

  const world: World = {
    node: parts.node,
    settings,
    now: () => clock.now(),
    later: (ms, run) => clock.later(ms, run),
    random: (bytes) => parts.random.bytes(bytes),
    hash: (text) => createHash('sha256').update(text).digest('hex'),
    seal: (text) => createHmac('sha256', parts.secret).update(text).digest(),
    unreachable: parts.unreachable,
    files: parts.blobs,
    lock: locks.lock,
    unlock: locks.unlock,
    id: (prefix, from, slot) => {
      if (from === undefined) return makeId(prefix, clock.now(), parts.random.bytes(10), slot)
      const bytes = createHmac('sha256', parts.secret).update(`id/${prefix}/${from}`).digest()
      // The part that is a time in other ids is hash here: a repeat cannot know when the first request came.
      return makeId(
        prefix,
        bytes.readUIntBE(16, 6),
        bytes,
        slot ?? hashOf(bytes.toString('hex')) % 1024,
      )
    },
    organization: () => parts.organization,

    command: async (command: Command): Promise<Outcome> =>
      (await owner(command, { type: 'command', command })) as Outcome,
    ask: async (to, name, input = {}) => {
      const answer = await owner(to, { type: 'ask', to, name, input })
      // A reply of undefined leaves nothing when it comes from another process.
      return 'refused' in answer ? answer : (answer as { readonly reply?: unknown }).reply
    },
    view: (project, name, input, fresh, within) =>
      view(partitionOf(project, partitions), {
        name,
        project,
        input,
        ...(fresh !== undefined && { fresh }),
        ...(within !== undefined && { within }),
      }),
    everywhere: (name, input) =>
      Promise.all(
        Array.from({ length: partitions }, (_, partition) =>
          view(partition, { name, project: parts.organization, input }),
        ),
      ),
    live: (project, kind, id, on) =>
      bus.subscribe(subjects.live(project, kind, id), (message) => {
        on(message as Placed)
      }),
    moved: (project, on) =>
      bus.subscribe(subjects.moved(project), (message) => {
        on((message as { cursor: number }).cursor)
      }),
    preview: (project, session, pieces) => bus.publish(subjects.preview(project, session), pieces),
    // Nodes that were built before pieces were gathered send each by itself.
    onPreview: (project, session, on) =>
      bus.subscribe(subjects.preview(project, session), (message) => {
        on([message as Preview | readonly Preview[]].flat())
      }),
    previewed: async (project, message) => {
      const answer = await bus.request(subjects.previewed(project, message), {}, SHOWN)
      return typeof answer === 'object' ? (answer.answer as Previewed) : undefined
    },
    onPreviewed: (project, message, answer) =>
      bus.subscribe(subjects.previewed(project, message), () => answer()),
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
      bus.subscribe(subjects.gateway(parts.node), (message) => handler(message as GatewayMessage))
    },
    onOffer: (project, queue, capability, handler) =>
      bus.subscribe(
        subjects.offerFilter(project, queue, capability),
        (message) => handler(message as Offer),
        subjects.offerGroup,
      ),
    demand: (project) => bus.publish(subjects.demand(project), { project }),
    fresh: () => parts.membership.fresh(),
    ended: () => parts.membership.ended(),
    unready: parts.unready,
    ...(parts.storage && { storage: parts.storage }),
    metrics: parts.metrics,
    log: parts.log,
    count: parts.count,
  }

  /** Until the node has forgotten, or is dead: a dead one answers nobody, and a cut-off one knows that it is. An executor keeps what a gateway keeps, and shares it with one in the same process. */
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
      await sleep(50)
    }
  }
  return world
}
