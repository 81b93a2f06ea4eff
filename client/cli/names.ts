/**
 * Accepts names where the API takes ids: `baton agent get support` finds the agent with that name.
 * Ids are sent unchanged. A name that matches several records, or none, is reported as a mistake.
 * The message lists the matches or the closest name.
 */
import { api } from '../../protocol/api.ts'
import type { Row } from '../../protocol/contract.ts'
import { prefixes } from '../../protocol/ids.ts'
import { BatonError, isUnknownInclude } from '../errors.ts'
import { closest } from '../suggest.ts'
import type { Transport } from '../transport.ts'
import { Mistake } from './mistake.ts'

/**
 * A type of record that has names: its noun, the query that lists it, and the fields that contain
 * names.
 */
interface Named {
  readonly noun: string
  readonly list: Row
  readonly by: readonly string[]
  /** The parameter `include` of a list that has cursors only on request. */
  readonly include?: readonly string[]
}
const named = {
  agent: { noun: 'agent', list: api['agent.list'], by: ['name'] },
  environment: { noun: 'environment', list: api['environment.list'], by: ['name'] },
  channel: { noun: 'channel', list: api['channel.list'], by: ['name', 'display_name'] },
  key: { noun: 'API key', list: api['key.list'], by: ['name'] },
  organizationKey: { noun: 'API key', list: api['key.list_organization'], by: ['name'] },
  loop: { noun: 'loop', list: api['loop.list'], by: ['name'] },
  organizationAction: { noun: 'action', list: api['organization_action.list'], by: ['name'] },
  organizationSkill: { noun: 'skill', list: api['skill.list_organization'], by: ['name'] },
  principal: {
    noun: 'principal',
    list: api['principal.list'],
    by: ['name'],
    include: ['next_cursor'],
  },
  role: { noun: 'role', list: api['role.list'], by: ['name'] },
  skill: { noun: 'skill', list: api['skill.list'], by: ['name'] },
  table: { noun: 'table', list: api['table.list'], by: ['name'] },
  toolkit: { noun: 'toolkit', list: api['toolkit.list'], by: ['name'] },
  user: { noun: 'person', list: api['user.list'], by: ['name', 'email'] },
  webhook: { noun: 'webhook', list: api['webhook.list'], by: ['name'] },
  workflow: { noun: 'workflow', list: api['workflow.list'], by: ['handle'] },
} as const satisfies Readonly<Record<string, Named>>
type Kind = keyof typeof named

/** Record types to which the parameter `id` of a row refers, by the group of the row. */
const groups: Readonly<Record<string, readonly Kind[]>> = {
  agent: ['agent'],
  memory: ['agent'],
  channel: ['channel'],
  key: ['key'],
  loop: ['loop'],
  principal: ['principal'],
  role: ['role'],
  row: ['table'],
  skill: ['skill'],
  table: ['table'],
  token: ['user'],
  toolkit: ['toolkit'],
  user: ['user'],
  workflow: ['workflow'],
}
/**
 * Record types to which a field or parameter refers, by its name. These names have the same meaning
 * in all rows.
 */
const fields: Readonly<Record<string, readonly Kind[]>> = {
  action_id: ['organizationAction'],
  agent_id: ['agent'],
  channel_id: ['channel'],
  environment_id: ['environment'],
  loop_id: ['loop'],
  member_id: ['user', 'agent', 'principal'],
  member_ids: ['user', 'agent', 'principal'],
  owner_id: ['user', 'principal'],
  principal_id: ['user', 'principal', 'agent'],
  role_id: ['role'],
  role_ids: ['role'],
  scope_role_id: ['role'],
  sender_agent_id: ['agent'],
  sender_id: ['user', 'agent', 'principal'],
  skill_ids: ['skill'],
  target_user_id: ['user', 'agent', 'principal'],
  target_user_ids: ['user', 'agent', 'principal'],
  toolkit_ids: ['toolkit'],
  user_id: ['user', 'agent', 'principal'],
  webhook_id: ['webhook'],
}
/**
 * In API rows of the organization, names of keys and skills refer to the organization's own keys
 * and skills.
 */
const ofOrganization: Readonly<Partial<Record<Kind, Kind>>> = {
  key: 'organizationKey',
  skill: 'organizationSkill',
}

const PREFIX = new RegExp(`^(${Object.values(prefixes).join('|')})_[0-9A-Za-z]{20,}$`)
/** Maximum number of pages of a list that are searched for a name. */
const MAX_PAGES = 25

/**
 * Returns the types of records that a field of a row's input can refer to by name. Returns none if
 * the field does not contain ids of named records.
 */
function kindsOf(name: string, row: Row, field: string): readonly Kind[] {
  const group = name.split('.')[0] ?? ''
  // Queries and `workflow.run` accept the handle of a workflow, so it is sent unchanged. Changes
  // need the id.
  if (group === 'workflow' && (row.verb === 'query' || name === 'workflow.run')) return []
  // Filters of the audit log and of invocations can refer to deleted records, which can only be
  // identified by id.
  if (['audit', 'invocation'].includes(group)) return []
  const kinds = field === 'id' ? (groups[group] ?? []) : (fields[field] ?? [])
  return row.route.includes('/projects/:project')
    ? kinds
    : kinds.map((kind) => ofOrganization[kind] ?? kind)
}

/**
 * Replaces names in an input with ids.
 * @param name the name of the row.
 * @throws Mistake if a name matches no record, or several.
 */
export async function resolveNames(
  transport: Transport,
  name: string,
  row: Row,
  input: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const resolved: Record<string, unknown> = { ...input }
  const project = typeof input['project'] === 'string' ? { project: input['project'] } : {}
  for (const [field, value] of Object.entries(input)) {
    const kinds = kindsOf(name, row, field)
    if (kinds.length === 0) continue
    const idOf = (text: unknown) =>
      typeof text === 'string' ? resolve(transport, kinds, text, project) : text
    resolved[field] = Array.isArray(value) ? await Promise.all(value.map(idOf)) : await idOf(value)
  }
  return resolved
}

/**
 * Resolves a name to the id of a record of the given types. Ids and `role:<name>` targets are
 * returned unchanged.
 */
async function resolve(
  transport: Transport,
  kinds: readonly Kind[],
  text: string,
  project: { readonly project?: string },
): Promise<string> {
  if (PREFIX.test(text) || text.startsWith('role:')) return text
  const known: string[] = []
  for (const kind of kinds) {
    const { list, by, noun, include }: Named = named[kind]
    const found: string[] = []
    try {
      for await (const item of all(transport, list, { ...project, ...(include && { include }) })) {
        if (item['id'] === text) return text
        const names = by.map((member) => item[member]).filter((one) => typeof one === 'string')
        if (names.includes(text) && typeof item['id'] === 'string') found.push(item['id'])
        known.push(...names)
      }
    } catch (error) {
      // If the caller may not list the records, the text is sent unchanged, as it may be an id.
      if (error instanceof BatonError && error.status === 403) return text
      throw error
    }
    if (found.length > 1)
      throw new Mistake(
        `The name ${text} belongs to ${found.length} ${noun}s: ${found.slice(0, 5).join(', ')}. Use one of these ids.`,
      )
    if (found[0] !== undefined) return found[0]
  }
  const near = closest(text, known)
  const nouns = kinds.map((kind) => named[kind].noun).join(', ')
  throw new Mistake(
    `There is no ${nouns} named ${JSON.stringify(text)}.` +
      (near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`),
  )
}

/** Yields the records of a list, from at most `MAX_PAGES` pages. */
async function* all(
  transport: Transport,
  list: Row,
  query: { readonly project?: string; readonly include?: readonly string[] },
): AsyncGenerator<Readonly<Record<string, unknown>>> {
  const { include, ...others } = query
  const first = async (): Promise<unknown> => {
    if (include === undefined) return transport.call(list, { ...others, limit: 200 })
    try {
      return await transport.call(list, { ...others, include, limit: 200 })
    } catch (error) {
      // An older service has a single page.
      if (isUnknownInclude(error)) return transport.call(list, { ...others, limit: 200 })
      throw error
    }
  }
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const reply = (await (cursor === undefined
      ? first()
      : transport.call(list, { ...query, limit: 200, cursor }))) as {
      items?: readonly Record<string, unknown>[]
      next_cursor?: string
    }
    yield* reply.items ?? []
    cursor = reply.next_cursor
    if (cursor === undefined) return
  }
}
