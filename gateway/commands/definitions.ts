/**
 * Preparations and queries of the rows for toolkits and skills, their assignments to agents, and
 * the inbox and bindings of agents.
 */
import type { Origin } from '../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { ViewQueries } from '../../protocol/queries/views.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { readSkill } from '../files/front-matter.ts'
import { hexOf } from '../http/hex.ts'
import { type LocalContext, type LocalQuery, localQuery } from '../listing.ts'
import type { Prepare, Prepared } from '../prepare.ts'
import {
  allSkills,
  allToolkits,
  serviceToolkits,
  skillAssignments,
  toolkitAssignments,
} from '../queries/agent-capabilities.ts'
import { findAgent } from '../sessions/definition.ts'

type Usage = ViewQueries['skill_usage']['reply']['items']

const importSkill: Prepare = (_, { body }) => {
  const skill = readSkill(String(body['content']), body['name'] as string | undefined)
  return isRefusal(skill) ? skill : { input: { skill } }
}
/** Refuses a request that would change a skill of the organization through a project route. */
async function requireProjectSkill(
  { directory }: Edge,
  { slots }: Call,
): Promise<Prepared | Refusal> {
  const known = await directory.organization()
  if (isRefusal(known)) return known
  return getOwn(known.skills, slots['id'] ?? '') === undefined
    ? {}
    : refuse(
        'forbidden',
        undefined,
        'Skills of the organization can be changed only below /organization/skills.',
      )
}

/**
 * Prepares an assignment of skills. Skills of the organization are held until the assignment is
 * decided, so that none of them is deleted in the meantime (S1 of protocol/agents/capabilities.ts).
 */
async function assignSkills(
  edge: Edge,
  call: Call,
  _: unknown,
  origin: Origin,
): Promise<Prepared | Refusal> {
  const { world, directory } = edge
  const project = scopeId(edge, call)
  const read = () => skillAssignments(edge, project, call.slots['id'] ?? '')
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const skills = (call.body['skill_ids'] as readonly string[]).filter(
    (id) => getOwn(known.skills, id) !== undefined,
  )
  if (skills.length === 0) return { input: { held: [] }, answer: read }
  const id = hexOf(world.random(16))
  const tell = (name: 'skill.hold' | 'skill.let_go', input: object) =>
    world.command({
      project: known.id,
      kind: 'organization',
      id: known.id,
      command_id: `${name}:${id}`,
      name,
      input: { id, ...input },
      origin,
    })
  const held = await tell('skill.hold', { skills })
  if (isRefusal(held)) return held
  return {
    input: { held: skills },
    answer: read,
    after: async () => void (await tell('skill.let_go', {})),
  }
}

/** Returns the assignments of a skill in all partitions, except those in deleted projects. */
async function usageOf(
  { world, directory }: Pick<LocalContext, 'world' | 'directory'>,
  id: string,
): Promise<Usage | Refusal> {
  const [known, answers] = await Promise.all([
    directory.organization(),
    world.everywhere('skill_usage', { id }),
  ])
  if (isRefusal(known)) return known
  const refused = answers.find(isRefusal)
  if (refused) return refused
  return (answers as ViewQueries['skill_usage']['reply'][])
    .flatMap(({ items }) => items)
    .filter(({ project_id }) => getOwn(known.projects, project_id)?.deleted === undefined)
}
const total = (usage: Usage): number => usage.reduce((sum, { agent_count }) => sum + agent_count, 0)

/**
 * Reads the input from which the organization decides whether a skill may be deleted: first the
 * number of holds granted so far, then the number of assignments (S2 of
 * protocol/agents/capabilities.ts).
 */
async function readDeletionFacts(
  { world, directory }: Edge,
  { slots }: Call,
): Promise<Prepared | Refusal> {
  const id = slots['id'] ?? ''
  const organization = world.organization()
  const grants = await world.ask(
    { project: organization, kind: 'organization', id: organization },
    'skill_grants',
    { id },
  )
  if (isRefusal(grants)) return grants
  const usage = await usageOf({ world, directory }, id)
  return isRefusal(usage) ? usage : { input: { seen: { grants, assigned: total(usage) } } }
}

const addInboxDomain: Prepare = async (edge, call) => {
  const { inbox_domain: domain } = edge.world.settings
  if (domain !== undefined) return { input: { domain } }
  const agent = await findAgent(edge, scopeId(edge, call), { id: call.slots['id'] ?? '' })
  return isRefusal(agent) ? agent : refuse('inbox_unavailable')
}

/** Preparations of the command rows, by row name. */
export const definitionPreparations: Readonly<Record<string, Prepare>> = {
  'skill.import': importSkill,
  'skill.import_organization': importSkill,
  'skill.replace': requireProjectSkill,
  'skill.delete': requireProjectSkill,
  'skill.delete_organization': readDeletionFacts,
  'agent.assign_toolkits': (edge, call) => ({
    answer: () => toolkitAssignments(edge, scopeId(edge, call), call.slots['id'] ?? ''),
  }),
  'agent.assign_skills': assignSkills,
  'agent.inbox': addInboxDomain,
}

const listed = <T>(items: readonly T[] | Refusal) =>
  isRefusal(items) ? items : { items: [...items] }
/** Handlers of the query rows, by row name. */
export const definitionQueries: Readonly<Record<string, LocalQuery>> = {
  'toolkit.list': localQuery<'toolkit.list'>(async (context, { include_system }) =>
    listed(await allToolkits(context, context.project ?? '', include_system)),
  ),
  'toolkit.get': localQuery<'toolkit.get'>(async (context, { id }) => {
    const { world, project = '' } = context
    const system = await serviceToolkits(context, project)
    if (isRefusal(system)) return system
    return (
      system.find((toolkit) => toolkit.id === id) ??
      (await world.view(project, 'toolkit.get', { id }))
    )
  }),
  'skill.list': localQuery<'skill.list'>(async (context) =>
    listed(await allSkills(context, context.project ?? '')),
  ),
  'skill.get': localQuery<'skill.get'>(async ({ world, project = '' }, { id }) => {
    const found = await world.view(project, 'skill.get', { id })
    return isRefusal(found) && found.refused === 'not_found'
      ? world.view(world.organization(), 'skill.get_organization', { id })
      : found
  }),
  'skill.usage': localQuery<'skill.usage'>(async (context, { id }) => {
    const known = await context.directory.organization()
    if (isRefusal(known)) return known
    if (getOwn(known.skills, id) === undefined) return refuse('not_found')
    const usage = await usageOf(context, id)
    return isRefusal(usage)
      ? usage
      : {
          skill_id: id,
          assignment_count: total(usage),
          project_count: usage.length,
          projects: [...usage],
        }
  }),
  'agent.bindings': localQuery<'agent.bindings'>(
    async ({ world, project = '' }, { id }) =>
      (await world.ask({ project, kind: 'project', id: project }, 'bindings', { id })) ??
      refuse('not_found'),
  ),
  'agent.toolkits': localQuery<'agent.toolkits'>((context, { id }) =>
    toolkitAssignments(context, context.project ?? '', id),
  ),
  'agent.skills': localQuery<'agent.skills'>((context, { id }) =>
    skillAssignments(context, context.project ?? '', id),
  ),
}
