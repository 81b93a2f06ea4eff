/**
 * Preparations of the channel rows. They look up the principals and messages that a request refers
 * to, and add the parts of the reply that the channel's actor does not store. This file also
 * removes inactive principals from channels. Most rules of channels are in the actor.
 */

import {
  activePrincipal,
  type OrganizationDirectory,
  type ProjectDirectory,
} from '../../protocol/access/directory.ts'
import { isAmbiguous, mentionsOf } from '../../protocol/channels/mentions.ts'
import { dmName, type MessageFacts, type Person } from '../../protocol/channels/schema.ts'
import type { Origin } from '../../protocol/entry.ts'
import { isRefusal, type Refusal, refuseFields } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { authorize } from '../auth/authorize.ts'
import { viewerOf } from '../auth/viewer.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import type { Identity } from '../http/idempotency.ts'
import { sendNew } from '../http/send.ts'
import type { World } from '../ports.ts'
import type { Prepare, Prepared } from '../prepare.ts'
import { standingOf } from '../sessions/session-id.ts'

type Known = { readonly organization: OrganizationDirectory; readonly project: ProjectDirectory }

async function directories({ directory }: Edge, { project }: Call): Promise<Known | Refusal> {
  const organization = await directory.organization()
  if (isRefusal(organization)) return organization
  const own = await directory.project(project?.id ?? '')
  return isRefusal(own) ? own : { organization, project: own }
}

function personOf({ organization, project }: Known, id: string): Person | undefined {
  const principal = activePrincipal(project, organization, id)
  return principal && { id, kind: principal.kind === 'agent' ? 'agent' : 'user' }
}

/**
 * Returns the active principal with this id if it may become a member. An agent must also have the
 * status `active`.
 */
function eligibleMember(known: Known, id: string): Person | undefined {
  const person = personOf(known, id)
  return person?.kind === 'agent' && getOwn(known.project.agents, id)?.status !== 'active'
    ? undefined
    : person
}

const readChannel = (edge: Edge, call: Call, id: string): Promise<unknown> =>
  edge.world.view(scopeId(edge, call), 'channel.get', { id, viewer: viewerOf(call.caller) })

/**
 * Prepares the creation of a channel. The command goes to the actor of the channel's name. The name
 * of a direct message is derived from its members. Because this actor depends on the body, a
 * request under an idempotency key is first recorded at an actor whose id is derived from the key.
 * That actor refuses a different request under the same key.
 */
async function create(
  edge: Edge,
  call: Call,
  { command_id, seed, fingerprint }: Identity,
  origin: Origin,
): Promise<Prepared | Refusal> {
  const { world } = edge
  const known = await directories(edge, call)
  if (isRefusal(known)) return known
  const wanted = (call.body['member_ids'] ?? []) as readonly string[]
  const found = wanted.map((id) =>
    id === call.caller.principal.id ? undefined : eligibleMember(known, id),
  )
  const faults = wanted.flatMap((id, index) =>
    found[index] || id === call.caller.principal.id
      ? []
      : [
          {
            field: `member_ids[${index}]`,
            message: 'there is no such principal in the project',
            actual: id,
          },
        ],
  )
  const refused = faults.length > 0 ? refuseFields(...faults) : undefined
  if (refused && seed === undefined) return refused
  const others = [...new Set(wanted)].filter((id) => id !== call.caller.principal.id)
  const everybody = JSON.stringify([call.caller.principal.id, ...others].sort())
  const dm = call.body['kind'] === 'dm'
  const name = dm ? dmName(world.hash(everybody)) : String(call.body['name'])
  const id = world.id(
    'channel_name',
    `${scopeId(edge, call)}/${dm ? `dm/${everybody}` : `channel/${name}`}`,
  )
  if (refused) return { id, unlessRepeated: refused }
  const people = [
    ...new Map(found.flatMap((person) => (person ? [[person.id, person] as const] : []))).values(),
  ]
  if (seed !== undefined && fingerprint !== undefined) {
    const keyed = await world.command({
      project: scopeId(edge, call),
      kind: 'channel_name',
      id: world.id('channel_name', seed),
      command_id,
      fingerprint,
      name: 'name.key',
      input: {},
      origin,
    })
    if (isRefusal(keyed)) return keyed
  }
  return {
    id,
    input: { creation: { name, people } },
    answer: async (reply) => {
      const { id, status_code } = reply as { id: string; status_code?: number }
      const gone = await expelInactive(edge, call, origin, id, [
        call.caller.principal.id,
        ...people.map((person) => person.id),
      ])
      if (isRefusal(gone)) return gone
      if (status_code === undefined && gone.length === 0) return reply
      const channel = await readChannel(edge, call, id)
      return isRefusal(channel)
        ? channel
        : { ...(channel as object), ...(status_code !== undefined && { status_code }) }
    },
  }
}

async function addMember(
  edge: Edge,
  call: Call,
  _: Identity,
  origin: Origin,
): Promise<Prepared | Refusal> {
  const known = await directories(edge, call)
  if (isRefusal(known)) return known
  const { user_id, agent_id, member_id } = call.body
  const id = String(user_id ?? agent_id ?? member_id)
  const person = eligibleMember(known, id)
  if (!person) return {}
  return {
    input: { person },
    answer: async (reply) => {
      const gone = await expelInactive(edge, call, origin, call.slots['id'] ?? '', [id])
      if (isRefusal(gone) || gone.length === 0) return isRefusal(gone) ? gone : reply
      const field =
        user_id !== undefined ? 'user_id' : agent_id !== undefined ? 'agent_id' : 'member_id'
      return refuseFields({
        field,
        message: 'there is no such principal in the project',
        actual: id,
      })
    },
  }
}

/**
 * Expels new members that stopped being active principals between the lookup and the commit of
 * their membership. A principal that stops being active after this check is removed by
 * `leaveChannels`, which reads the memberships after every gateway has dropped its cached
 * directory.
 * @returns the ids of the expelled members.
 */
async function expelInactive(
  edge: Edge,
  call: Call,
  origin: Origin,
  channel_id: string,
  ids: readonly string[],
): Promise<readonly string[] | Refusal> {
  const known = await directories(edge, call)
  if (isRefusal(known)) return known
  const gone = ids.filter((id) => !personOf(known, id))
  const outcomes = await Promise.all(
    gone.map((id) => expel(edge.world, scopeId(edge, call), known.project, channel_id, id, origin)),
  )
  return outcomes.find(isRefusal) ?? gone
}

/** Expels a member. A disabled member stays in direct messages. A repeat changes nothing. */
export const expel = (
  world: Pick<World, 'command' | 'newCommandId'>,
  project: string,
  home: ProjectDirectory,
  id: string,
  member_id: string,
  origin: Origin,
) =>
  sendNew(
    world,
    { project, kind: 'channel', id },
    'channel.expel',
    { member_id, disabled: getOwn(home.principals, member_id)?.state === 'disabled' },
    origin,
  )

/**
 * Refuses the removal of another member by a caller without `channel.write`. A caller may always
 * remove itself.
 */
const removeMember = ({ world }: Edge, { caller, slots }: Call): Prepared | Refusal =>
  (slots['user_id'] === caller.principal.id
    ? undefined
    : authorize(world.settings.brand, 'channel.write', caller)) ?? {}

/**
 * Returns the immutable facts about a message of the channel in the path. An unknown message is not
 * refused here, because the channel's actor handles that case.
 */
async function factsOf(
  edge: Edge,
  call: Call,
  message_id: unknown,
): Promise<{ target?: MessageFacts; thread?: readonly string[] } | Refusal> {
  if (message_id === undefined) return {}
  const answer = await edge.world.view(scopeId(edge, call), 'channel_facts', {
    id: call.slots['id'] ?? '',
    message_id: String(message_id),
  })
  if (isRefusal(answer)) return answer
  return answer.facts
    ? { target: answer.facts, ...(answer.thread && { thread: answer.thread }) }
    : {}
}

const namesOf = ({ agents }: ProjectDirectory): Record<string, string> =>
  Object.fromEntries(Object.entries(agents).map(([id, { name }]) => [id, name]))

/**
 * Returns the ids of the agents that a text mentions. When a mention matches the names of several
 * agents, only the agents that are members of the channel are considered.
 */
async function mentionedIn(
  edge: Edge,
  call: Call,
  text: string,
  names: Readonly<Record<string, string>>,
): Promise<readonly string[] | Refusal> {
  if (!isAmbiguous(text, names)) return mentionsOf(text, names)
  const found = await edge.world.view(scopeId(edge, call), 'channel_agents', {
    id: call.slots['id'] ?? '',
  })
  return isRefusal(found)
    ? found
    : mentionsOf(
        text,
        Object.fromEntries(
          found.items.flatMap((id) =>
            getOwn(names, id) === undefined ? [] : [[id, names[id] ?? '']],
          ),
        ),
      )
}

async function send(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const facts = await factsOf(edge, call, call.body['reply_to'])
  if (isRefusal(facts)) return facts
  const { content, metadata, sender_agent_id, sender_session_id } = call.body
  const known =
    sender_agent_id === undefined && !String(content).includes('@')
      ? undefined
      : await directories(edge, call)
  if (isRefusal(known)) return known
  const agent =
    known && sender_agent_id !== undefined ? personOf(known, String(sender_agent_id)) : undefined
  const from = isId(String(sender_session_id), 'agent_session')
    ? await standingOf(edge, scopeId(edge, call), String(sender_session_id))
    : undefined
  if (isRefusal(from)) return from
  const mentioned = known
    ? await mentionedIn(edge, call, String(content), namesOf(known.project))
    : []
  if (isRefusal(mentioned)) return mentioned
  return {
    input: {
      ...facts,
      ...(agent?.kind === 'agent' && { agent }),
      ...(from?.session && { session_agent: from.session.agent_id }),
      ...(mentioned.length > 0 && { mentioned }),
      may_invoke: call.caller.permissions.has('agent.invoke'),
    },
    reply: { content, ...(metadata !== undefined && { metadata }) },
  }
}

/**
 * Prepares an edit. The response is read from the view after the change, because the channel's
 * actor does not store the content of messages.
 */
async function edit(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const { id = '', message_id = '' } = call.slots
  const facts = await factsOf(edge, call, message_id)
  return isRefusal(facts)
    ? facts
    : {
        input: facts,
        answer: () =>
          edge.world.view(scopeId(edge, call), 'channel.message', {
            id,
            message_id,
            viewer: viewerOf(call.caller),
          }),
      }
}

const overseen = (_: Edge, { caller }: Call): Prepared => ({
  input: { project_admin: viewerOf(caller).admin },
})

/** Preparations of the channel rows, by row name. */
export const channelPreparations: Readonly<Record<string, Prepare>> = {
  'channel.create': create,
  'channel.update': overseen,
  'channel.delete': overseen,
  'channel.add_member': addMember,
  'channel.remove_member': removeMember,
  'channel.send': send,
  'channel.edit': edit,
}

/**
 * If a call disabled or archived a principal, removes this principal from its channels. A disabled
 * principal stays in direct messages. Runs before the call is answered, and again when the call is
 * repeated. Does nothing for any other call.
 */
export async function leaveChannels(
  edge: Edge,
  call: Call,
  origin: Origin,
): Promise<Refusal | undefined> {
  const { leavesChannels } = call.row.shape
  if (!leavesChannels || (leavesChannels === 'when_disabled' && call.body['state'] !== 'disabled'))
    return undefined
  const { world } = edge
  const project = scopeId(edge, call)
  const member_id = call.slots['id'] ?? ''
  const known = await directories(edge, call)
  if (isRefusal(known) || personOf(known, member_id)) return isRefusal(known) ? known : undefined
  const answer = await world.view(project, 'channels_of', { member_id })
  if (isRefusal(answer)) return answer
  const outcomes = await Promise.all(
    answer.items.map((id) => expel(edge.world, project, known.project, id, member_id, origin)),
  )
  return outcomes.find(isRefusal)
}
