/**
 * Opens the turn of an exchange: finds its session, resolves the definition of the turn, and reads
 * the messages since the agent's previous exchange. Messages are read with the agent's permissions,
 * so messages that the agent may not read as a member of the channel never reach its model.
 */

import { sendNew } from '../../../gateway/http/send.ts'
import type { CapabilityReader } from '../../../gateway/queries/agent-capabilities.ts'
import { agentOf, defineTurn } from '../../../gateway/sessions/definition.ts'
import { locateSession } from '../../../gateway/sessions/session-id.ts'
import {
  activePrincipal,
  type OrganizationDirectory,
  type ProjectDirectory,
} from '../../../protocol/access/directory.ts'
import { type ExchangeOpening, sessionKeyOf } from '../../../protocol/channels/exchange.ts'
import type { ChannelMessage } from '../../../protocol/channels/schema.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { SortKey } from '../../../protocol/queries/views.ts'
import { isJsonObject } from '../../../protocol/rules/json-object.ts'
import type { Block } from '../../../protocol/sessions/turns/blocks.ts'
import { systemOrigin } from '../system-origin.ts'
import type { Runs } from './errands.ts'

type Errand = Parameters<Runs<'exchange'>>[2]
/** Number of messages per read. */
const PAGE = 100
/**
 * Limits on the newest messages that an agent is shown: their number and, approximately, their
 * total length in characters.
 */
const SHOWN = { messages: 50, characters: 60_000 } as const

/**
 * Returns the messages that the agent has not been shown yet, oldest first, within the limits of
 * `SHOWN`. In a thread that is new to the agent, the root and the agent's own messages are
 * included.
 */
async function unheard(
  { world }: Pick<CapabilityReader, 'world'>,
  project: string,
  { exchange, channel }: Errand,
): Promise<readonly ChannelMessage[] | Refusal> {
  const { agent_id, root, after_seq, through_seq } = exchange
  const of = { id: channel.id, viewer: { id: agent_id, admin: false } }
  const fresh = after_seq === 0 && root !== undefined
  const found: ChannelMessage[] = []
  for (let after: readonly SortKey[] | undefined; ; ) {
    const page = await world.view(project, 'channel.messages', {
      ...of,
      limit: PAGE,
      ...(root !== undefined && { reply_to: root }),
      ...(after !== undefined && { after }),
    })
    if (isRefusal(page)) return page
    const own_thread = page.items.filter(
      (message) => root !== undefined || message.reply_to === undefined,
    )
    found.push(
      ...own_thread.filter(
        ({ seq, sender_id }) =>
          seq > after_seq && seq <= through_seq && (fresh || sender_id !== agent_id),
      ),
    )
    if (
      page.position === undefined ||
      found.length >= SHOWN.messages ||
      (page.items.at(-1)?.seq ?? 0) <= after_seq
    )
      break
    after = page.position
  }
  const first = fresh
    ? await world.view(project, 'channel.message', { ...of, message_id: root })
    : undefined
  if (first && isRefusal(first)) return first
  const messages = [...found.slice(0, SHOWN.messages), ...(first ? [first] : [])]
  let left: number = SHOWN.characters
  return messages
    .filter(({ content }, index) => index === 0 || (left -= content.length) > 0)
    .reverse()
}

const nameIn = (
  { principals, agents }: ProjectDirectory,
  { keys }: OrganizationDirectory,
  id: string,
): string =>
  getOwn(agents, id)?.name ??
  getOwn(principals, id)?.name ??
  Object.values(keys).find(({ principal_id }) => principal_id === id)?.name ??
  id

/** Returns a description of the channel for the model, in addition to the instructions. */
function about({ channel, alone }: Errand, me: string, others: readonly string[]): string {
  if (alone) return 'You are in a direct message. Your answer is posted there.'
  const { kind, name, topic } = channel
  const where =
    kind === 'dm'
      ? 'a direct message of several members'
      : `the channel "${name}"${topic === undefined ? '' : ` (topic: ${topic})`}`
  return (
    `You are ${me}, a member of ${where}. Each message begins with the name of its author. ` +
    'Your answer is posted there.' +
    (others.length === 0
      ? ''
      : ` To call another agent, write @ and its name: ${others.join(', ')}.`)
  )
}

/** Cancels turns. A repeat, or a turn that has ended, changes nothing. */
export const endTurns: Runs<'end_turns'> = async ({ world }, project, { channel_id, turns }) => {
  const origin = systemOrigin(world, world.node)
  for (const { agent_id, root, turn_id } of turns) {
    const agent = { id: agent_id, name: '' }
    const seed = { session_key: sessionKeyOf(channel_id, root) }
    const located = await locateSession({ world }, { project, agent, seed })
    if (isRefusal(located)) return located
    if (!located.session) continue
    const to = { project, kind: 'session', id: located.id } as const
    const stopped = await sendNew(world, to, 'turn.stop', { turn_id }, origin)
    if (isRefusal(stopped)) return stopped
  }
  return {}
}

/**
 * Opens the turn. A repeat finds the existing turn. If the channel has ended the exchange in the
 * meantime, for example because it was deleted, the turn is cancelled.
 */
export const openExchange: Runs<'exchange'> = async (asking, project, errand, signal) => {
  const { world, directory } = asking
  const { exchange, channel, agents, alone } = errand
  const [home, organization] = await Promise.all([
    directory.project(project),
    directory.organization(),
  ])
  if (isRefusal(home)) return home
  if (isRefusal(organization)) return organization
  const agent = await agentOf(asking, project, { id: exchange.agent_id })
  if (isRefusal(agent)) return agent
  if (!activePrincipal(home, organization, agent.id)) return refuse('agent_inactive')
  const located = await locateSession(asking, {
    project,
    agent,
    seed: { session_key: sessionKeyOf(channel.id, exchange.root) },
  })
  if (isRefusal(located)) return located
  const defined = await defineTurn(
    asking,
    { project, agent, session: located.session },
    { trigger: 'turn' },
  )
  if (isRefusal(defined)) return defined
  const messages = await unheard(asking, project, errand)
  if (isRefusal(messages)) return messages
  if (messages.length === 0)
    return refuse('conflict', undefined, 'There is no message left to answer.')
  const content = messages.map(
    (message): Block => ({
      type: 'text',
      text: alone
        ? message.content
        : `${nameIn(home, organization, message.sender_id)}: ${message.content}`,
    }),
  )
  const names = Object.fromEntries(
    agents.flatMap((id) =>
      id !== agent.id && getOwn(home.agents, id) ? [[id, home.agents[id]?.name ?? id]] : [],
    ),
  )
  const { definition } = defined
  const note = about(errand, agent.name, Object.values(names))
  const input: ExchangeOpening = {
    place: located.location,
    exchange_id: exchange.id,
    turn_id: exchange.turn_id,
    asker: exchange.asker,
    content,
    channel: { id: channel.id, names },
    ...(exchange.root !== undefined && { root: exchange.root }),
    title: channel.kind === 'dm' ? 'Direct message' : `#${channel.name}`,
    private: channel.private,
    definition: {
      ...definition,
      memory: definition.memory === undefined ? note : `${note}\n\n${definition.memory}`,
    },
  }
  const { asker } = exchange
  const outcome = await world.command({
    project,
    kind: 'session',
    id: located.id,
    command_id: `exchange:${exchange.id}`,
    name: 'exchange.open',
    input,
    origin: {
      at: world.now(),
      principal: asker,
      credential: { type: 'internal', id: exchange.id },
    },
  })
  if (isRefusal(outcome)) return outcome
  const { job_id, turn_id } = exchange
  const to = { project, kind: 'channel', id: channel.id } as const
  const now = await world.ask(to, 'job_spec', { job_id })
  if (isRefusal(now)) return now
  if (isJsonObject(now) && now['errand'] === 'exchange') return { session_id: located.id, turn_id }
  const turns = { errand: 'end_turns', channel_id: channel.id, turns: [exchange] } as const
  const stopped = await endTurns(asking, project, turns, signal)
  return isRefusal(stopped) ? stopped : { session_id: located.id, turn_id }
}
