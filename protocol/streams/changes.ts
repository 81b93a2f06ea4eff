/**
 * The kinds of records that the `changes` topic reports, and the changes that result from an entry
 * of the journal. Runs and jobs are omitted, because the feed of a project contains their events.
 *
 * Invariant: every event that may change the response to a list request for a kind results in a
 * change of that kind. Superfluous changes are harmless, because they only cause clients to load a
 * record again. Exception: a new time of last use of a key results in no change. Otherwise, every
 * request would result in one.
 */
import type { RowName } from '../api.ts'
import type { Entry, Event, Kind } from '../entry.ts'

/** For each kind of record, the row whose permission a caller needs to receive the changes. */
type Listed = Readonly<Record<string, RowName>>
const project = {
  action: 'action.list',
  agent: 'agent.list',
  artifact: 'artifact.list',
  assignment: 'assignment.list',
  blueprint: 'blueprint.bindings',
  channel: 'channel.list',
  delivery: 'webhook.deliveries',
  environment: 'environment.list',
  event: 'event.list',
  interaction: 'interaction.list',
  key: 'key.list',
  loop: 'loop.list',
  memory: 'memory.get',
  principal: 'principal.list',
  repository_host: 'repository_host.list',
  role: 'role.list',
  secret: 'secret.list',
  session: 'session.list',
  skill: 'skill.list',
  table: 'table.list',
  toolkit: 'toolkit.list',
  webhook: 'webhook.list',
  worker: 'worker.list',
  workflow: 'workflow.list',
} as const satisfies Listed
const organization = {
  action: 'organization_action.list',
  key: 'key.list_organization',
  project: 'project.list',
  resolver: 'resolver.get',
  skill: 'skill.list_organization',
} as const satisfies Listed
/** The kinds of records of a project and of the organization. */
export const changeKinds: {
  readonly project: Listed
  readonly organization: Listed
} = { project, organization }
/** All kinds, as listed in the description of the frames. */
export const allChangeKinds: readonly string[] = [
  ...new Set([...Object.keys(project), ...Object.keys(organization)]),
].sort()
/** The kinds whose records a caller may be unable to read despite the permission for the kind. */
export const closableKinds = ['artifact', 'channel', 'interaction', 'session'] as const
export type ClosableKind = (typeof closableKinds)[number]

/** A change to a record. */
export interface RecordChange {
  readonly kind: string
  /** The id of the record; absent if any record of the kind may have changed. */
  readonly id?: string
  /**
   * The id of a principal whose access to the record has changed. Only this principal receives the
   * change.
   */
  readonly only?: string
}

/** For each kind of actor that stores a single record, the kind of this record. */
const ofActor: { readonly [K in Kind]?: keyof typeof project } = {
  interaction: 'interaction',
  loop: 'loop',
  memory: 'memory',
  table: 'table',
  session: 'session',
  delivery: 'delivery',
  artifact: 'artifact',
  environment: 'environment',
  worker: 'worker',
  blueprint: 'blueprint',
}
/**
 * The kinds of records that events of a project change. Each key is the first part of an event
 * type.
 */
const ofProjectEvent: Readonly<Record<string, keyof typeof project>> = {
  action: 'action',
  agent: 'agent',
  assignment: 'assignment',
  binding: 'agent',
  blueprint: 'blueprint',
  key: 'key',
  principal: 'principal',
  repository_host: 'repository_host',
  role: 'role',
  secret: 'secret',
  skill: 'skill',
  skills: 'agent',
  toolkit: 'toolkit',
  toolkits: 'agent',
  webhook: 'webhook',
  workflow: 'workflow',
}
const ofOrganizationEvent: Readonly<Record<string, keyof typeof organization>> = {
  key: 'key',
  oauth_origins: 'resolver',
  organization_action: 'action',
  project: 'project',
  resolver: 'resolver',
  skill: 'skill',
}

/** Returns the changes that result from an entry. The same change may occur several times. */
export function changesOf(entry: Entry): readonly RecordChange[] {
  switch (entry.kind) {
    case 'project':
      return configured(entry, ofProjectEvent)
    case 'organization':
      return configured(entry, ofOrganizationEvent)
    case 'channel':
      return entry.events.flatMap((event) => ofChannel(event, entry.id))
    case 'events':
      return entry.events.some(({ type }) => type === 'source.published') ? [{ kind: 'event' }] : []
    default: {
      const kind = ofActor[entry.kind]
      return kind === undefined ? [] : [{ kind, id: entry.id }]
    }
  }
}
function configured(
  { events }: Entry,
  kinds: Readonly<Record<string, string>>,
): readonly RecordChange[] {
  return events.flatMap((event) => {
    if (event.type === 'key.used') return []
    const [subject = ''] = event.type.split('.')
    const kind = Object.hasOwn(kinds, subject) ? kinds[subject] : undefined
    if (kind === undefined) return []
    const { id } = event as Event & { readonly id?: string }
    // In events of bindings and blueprints, `id` does not identify the changed record, so the
    // change has no id.
    return id === undefined || subject === 'binding' || subject === 'blueprint'
      ? [{ kind }]
      : [{ kind, id }]
  })
}
function ofChannel(event: Event, id: string): readonly RecordChange[] {
  const change = { kind: 'channel', id }
  switch (event.type) {
    case 'member.added':
    case 'member.removed': {
      const { member } = event as Event & { readonly member: { readonly member_id: string } }
      // The sessions of a channel are readable by the readers of the channel, so their readability
      // changes too.
      return [
        change,
        { ...change, only: member.member_id },
        { kind: 'session', only: member.member_id },
      ]
    }
    case 'channel.updated': {
      const { channel } = event as Event & { readonly channel: { readonly private?: boolean } }
      // Principals that are not members lose access to a channel that becomes private. The changes
      // for them have no id, because they must not receive the id of the channel.
      return channel.private === undefined
        ? [change]
        : [change, { kind: 'channel' }, { kind: 'session' }]
    }
    case 'channel.deleted':
      return [change, { kind: 'session' }]
    default:
      return [change]
  }
}
