/**
 * The audit rules: one for each type of event that changes configuration, for all kinds of actors.
 * To audit another event type, add it to `Configuration`. The compiler then requires a rule for it.
 * `null` marks an event that is not audited. Kinds other than `organization` and `project` also
 * need `applyAudit` in the `view.ts` of their resource.
 */

import type { RoleAssignment, RoleEvent } from '../../../protocol/access/role-rows.ts'
import type { KeyEvent, PrincipalEvent } from '../../../protocol/access/rows.ts'
import type { SecretEvent } from '../../../protocol/access/secret-rows.ts'
import { isPersonal } from '../../../protocol/access/user-rows.ts'
import type { OrganizationActionEvent } from '../../../protocol/actions/organization-rows.ts'
import type { ActionEvent } from '../../../protocol/actions/rows.ts'
import type { AgentCapabilitiesEvent } from '../../../protocol/agents/capabilities.ts'
import type { BindingEvent } from '../../../protocol/agents/messaging-bindings.ts'
import type { AgentEvent } from '../../../protocol/agents/schema.ts'
import type { ArtifactAuditEvent } from '../../../protocol/artifacts/events.ts'
import type { BlueprintEvent } from '../../../protocol/blueprints/events.ts'
import type { Identity } from '../../../protocol/blueprints/stored.ts'
import type { ChannelAuditEvent } from '../../../protocol/channels/schema.ts'
import type { Entry, Event } from '../../../protocol/entry.ts'
import type { EnvironmentEvent } from '../../../protocol/environments/events.ts'
import type { InteractionEvent } from '../../../protocol/interactions/events.ts'
import type { LoopEvent } from '../../../protocol/loops/events.ts'
import type { MemoryEvent } from '../../../protocol/memory/schema.ts'
import type { OrganizationProjectEvent } from '../../../protocol/projects/rows.ts'
import type { RepositoryHostEvent } from '../../../protocol/repositories/rows.ts'
import type { ResolverEvent } from '../../../protocol/resolver/rows.ts'
import type { SkillEvent } from '../../../protocol/skills/schema.ts'
import type { TableEvent } from '../../../protocol/tables/events.ts'
import type { ToolkitEvent } from '../../../protocol/toolkits/schema.ts'
import type { WebhookEvent } from '../../../protocol/webhooks/rows.ts'
import type { WorkflowEvent } from '../../../protocol/workflows/rows.ts'
import { type Details, type Reading, type Rule, rule } from './audit-rule.ts'
import { mergeChanges } from './changes.ts'
import { furtherAudit } from './further-audit.ts'

type Configuration =
  | OrganizationProjectEvent
  | KeyEvent
  | PrincipalEvent
  | RoleEvent
  | WorkflowEvent
  | InteractionEvent
  | ChannelAuditEvent
  | LoopAuditEvent
  | AgentEvent
  | ToolkitEvent
  | SkillEvent
  | AgentCapabilitiesEvent
  | BindingEvent
  | ActionEvent
  | OrganizationActionEvent
  | WebhookEvent
  | SecretEvent
  | RepositoryHostEvent
  | ResolverEvent
  | MemoryEvent
  | ArtifactAuditEvent
  | TableAuditEvent
  | EnvironmentAuditEvent
  | BlueprintAuditEvent
/** Events that change the configuration of a loop. Its other events are not audited. */
type LoopAuditEvent = Extract<
  LoopEvent,
  { readonly type: 'loop.created' | 'loop.updated' | 'loop.deleted' | 'loop.auto_paused' }
>

/**
 * Events that record operations on blueprints. Changes to their resources are audited separately.
 */
type BlueprintAuditEvent = Extract<
  BlueprintEvent,
  { readonly type: 'blueprint.applied' | 'blueprint.protection_set' | 'blueprint.deleted' }
>

/** The events of an environment that have an `id`. Its other events are not audited. */
type EnvironmentAuditEvent = Extract<EnvironmentEvent, { readonly id: string }>

/** Events that change the definition of a table. Its data is not audited. */
type TableAuditEvent = Extract<
  TableEvent,
  { readonly type: 'table.created' | 'table.updated' | 'table.deleted' }
>

type On<T extends Configuration['type']> = Extract<Configuration, { readonly type: T }>
const created = <T extends Configuration['type']>(
  resource_type: string,
  details?: Details<On<T>>,
): Rule => rule('create', resource_type, details)
const updated = <T extends Configuration['type']>(
  resource_type: string,
  details?: Details<On<T>>,
): Rule => rule('update', resource_type, details)
const deleted = <T extends Configuration['type']>(
  resource_type: string,
  details?: Details<On<T>>,
): Rule => rule('delete', resource_type, details)

const named = ({ name }: { readonly name: string }) => ({ name })
/** Omits the name of a session's artifact, because the session may be private. */
const ofSession = (artifact: { readonly name: string }, session_id: string | undefined) =>
  session_id === undefined ? named(artifact) : {}
/** Returns the type of a credential. Only the id distinguishes a personal token from a key. */
const key = ({ id }: { readonly id: string }) => (isPersonal({ id }) ? 'personal_token' : 'api_key')
const given = ({ principal_id, role_id, role_name }: RoleAssignment) => ({
  name: role_name,
  changes: { principal_id: { to: principal_id }, role_id: { to: role_id } },
})
const taken = ({ principal_id, role_id, role_name }: RoleAssignment) => ({
  name: role_name,
  changes: { principal_id: { from: principal_id }, role_id: { from: role_id } },
})
/**
 * Changes that agents make to memory are not audited, because they are part of the agents' work,
 * and the feed of memory changes records them. The audit log never contains the content of memory
 * entries.
 */
const memorized: Details<
  Extract<MemoryEvent, { readonly type: 'memory.saved' | 'memory.forgotten' }>
> = ({ change: { agent_id, memory_key, operation, version } }, { origin }) =>
  origin.principal.type === 'agent'
    ? undefined
    : {
        resource_id: `${agent_id}:${memory_key}`,
        name: memory_key,
        ...(operation === 'created' && { action: 'create' }),
        changes:
          operation === 'updated' ? { version: { from: version - 1, to: version } } : undefined,
      }

/** Returns the name of a blueprint in the log: its namespace and key. */
const blueprintName = ({ namespace, blueprint_key }: Identity): string =>
  [namespace, blueprint_key].filter((part) => part !== undefined).join('/') || 'unnamed'

const rules: { readonly [T in Configuration['type']]: Rule | null } = {
  'organization.created': created<'organization.created'>('organization', named),
  'project.created': created<'project.created'>('project', ({ project }) => named(project)),
  'project.updated': updated<'project.updated'>('project', ({ project }) => ({
    name: project.name,
  })),
  'project.deleted': deleted<'project.deleted'>('project', named),
  'key.created': created<'key.created'>('api_key', (event) => ({
    resource_type: key(event),
    name: event.key.name,
  })),
  'key.revoked': deleted<'key.revoked'>('api_key', (event) => ({
    resource_type: key(event),
    name: event.name,
  })),
  'key.used': null,
  ...furtherAudit,
  'principal.created': created<'principal.created'>('principal', ({ principal }) =>
    named(principal),
  ),
  'principal.updated': updated<'principal.updated'>('principal', ({ principal }) => ({
    name: principal.name,
  })),
  'principal.deleted': deleted<'principal.deleted'>('principal', named),
  'role.created': created<'role.created'>('role', ({ role }) => named(role)),
  'role.updated': updated('role'),
  'role.deleted': deleted<'role.deleted'>('role', named),
  'assignment.created': created<'assignment.created'>('role_assignment', ({ assignment }) =>
    given(assignment),
  ),
  'assignment.deleted': deleted<'assignment.deleted'>('role_assignment', ({ assignment }) =>
    taken(assignment),
  ),
  'workflow.created': created<'workflow.created'>('workflow', ({ workflow }) => named(workflow)),
  'workflow.updated': updated<'workflow.updated'>('workflow', ({ workflow }) => ({
    name: workflow.name,
  })),
  'workflow.deleted': deleted<'workflow.deleted'>('workflow', named),
  'interaction.created': created<'interaction.created'>('interaction', ({ interaction }) => ({
    name: interaction.title,
  })),
  'interaction.responded': updated<'interaction.responded'>('interaction', ({ response }) => ({
    changes: {
      response: {
        to: response && {
          id: response.id,
          value: response.value,
          ...(response.comment !== undefined && { comment: response.comment }),
          ...(response.attempt !== undefined && { attempt: response.attempt }),
        },
      },
    },
  })),
  'interaction.submitted': updated<'interaction.submitted'>('interaction', () => ({
    changes: { status: { from: 'pending', to: 'in_review' } },
  })),
  'interaction.reviewed': updated<'interaction.reviewed'>('interaction', ({ set }) => ({
    changes: {
      status: { from: 'in_review', to: 'pending' },
      review_feedback: { to: set?.review_feedback },
    },
  })),
  'interaction.resolved': updated<'interaction.resolved'>(
    'interaction',
    ({ was, set, outcome }) => ({
      changes: {
        status: { from: was, to: set?.status },
        ...(outcome && { outcome: { to: outcome.value } }),
        ...(typeof set?.cancel_reason === 'string' && { cancel_reason: { to: set.cancel_reason } }),
      },
    }),
  ),
  'interaction.linked': updated<'interaction.linked'>('interaction', ({ targets }) => ({
    changes: { links: { to: targets } },
  })),
  'interaction.deleted': deleted('interaction'),
  'channel.created': created<'channel.created'>('channel', ({ channel }) => ({
    name: channel.name,
  })),
  'channel.updated': updated('channel'),
  'channel.deleted': deleted<'channel.deleted'>('channel', named),
  'loop.created': created<'loop.created'>('loop', ({ loop }) => named(loop)),
  'loop.updated': updated<'loop.updated'>('loop', named),
  'loop.deleted': deleted<'loop.deleted'>('loop', named),
  'loop.auto_paused': updated<'loop.auto_paused'>('loop', ({ reason }) => ({
    changes: {
      status: { from: 'active', to: 'paused' },
      ...(reason !== undefined && { reason: { to: reason } }),
    },
  })),
  'table.created': created<'table.created'>('table', ({ table }) => named(table)),
  'table.updated': updated<'table.updated'>('table', ({ table }) => ({ name: table.name })),
  'table.deleted': deleted<'table.deleted'>('table', named),
  'blueprint.applied': updated<'blueprint.applied'>('blueprint', (event) => ({
    name: blueprintName(event),
    changes: {
      ...Object.fromEntries(Object.entries(event.counts).map(([action, to]) => [action, { to }])),
      ...(event.blueprint_version !== undefined && {
        blueprint_version: { to: event.blueprint_version },
      }),
    },
  })),
  'blueprint.protection_set': updated<'blueprint.protection_set'>('blueprint', (event) => ({
    name: blueprintName(event),
    changes: { protected: { to: event.protected } },
  })),
  'blueprint.deleted': deleted<'blueprint.deleted'>('blueprint', (event) => ({
    name: blueprintName(event),
    changes: Object.fromEntries(
      Object.entries(event.counts).map(([action, to]) => [action, { to }]),
    ),
  })),
  'environment.created': created<'environment.created'>('environment', ({ environment }) =>
    named(environment),
  ),
  'environment.updated': updated('environment'),
  'environment.status_changed': updated<'environment.status_changed'>(
    'environment',
    ({ record: { status } }) =>
      status === undefined ? undefined : { changes: { status: { to: status } } },
  ),
  'environment.destroyed': deleted('environment'),
  'environment.leased': updated<'environment.leased'>('environment', ({ record: { lease } }) => ({
    changes: { lease: { to: lease } },
  })),
  'environment.lease_ended': updated('environment', () => ({ changes: { lease: { to: null } } })),
  'environment.terminal_opened': updated<'environment.terminal_opened'>('environment', (event) => ({
    changes: { terminal: { to: event.terminal_id } },
  })),
  'environment.terminal_closed': updated<'environment.terminal_closed'>('environment', (event) => ({
    changes: { terminal: { from: event.terminal_id, to: null } },
  })),
  'member.added': created('channel_member'),
  'member.removed': deleted('channel_member'),
  'artifact.completed': created<'artifact.completed'>('artifact', ({ artifact, session_id }) =>
    ofSession(artifact, session_id),
  ),
  'artifact.converted': null,
  'artifact.deleted': deleted<'artifact.deleted'>('artifact', (event) =>
    ofSession(event, event.session_id),
  ),
  'memory.saved': updated<'memory.saved'>('agent_memory', memorized),
  'memory.forgotten': deleted<'memory.forgotten'>('agent_memory', memorized),
  'memory.cleared': null,
  'agent.created': created<'agent.created'>('agent', ({ agent }) => named(agent)),
  'agent.updated': updated<'agent.updated'>('agent', ({ agent }) => ({ name: agent.name })),
  'agent.deleted': deleted<'agent.deleted'>('agent', named),
  'toolkit.created': created<'toolkit.created'>('toolkit', ({ toolkit }) => named(toolkit)),
  'toolkit.updated': updated<'toolkit.updated'>('toolkit', ({ toolkit }) => ({
    name: toolkit.name,
  })),
  'toolkit.deleted': deleted<'toolkit.deleted'>('toolkit', named),
  'skill.created': created<'skill.created'>('skill', ({ skill }) => named(skill)),
  'skill.updated': updated<'skill.updated'>('skill', ({ skill }) => ({ name: skill.name })),
  'skill.deleted': deleted<'skill.deleted'>('skill', named),
  'binding.created': created<'binding.created'>('messaging_binding', ({ binding }) => ({
    name: `${binding.provider} ${binding.integration_id}`,
    changes: { agent_id: { to: binding.agent_id } },
  })),
  'binding.updated': updated('messaging_binding'),
  'binding.deleted': deleted('messaging_binding'),
  'toolkits.assigned': updated<'toolkits.assigned'>('agent_assignment', ({ toolkits }) => ({
    changes: { toolkits: { to: toolkits.map(({ id }) => id) } },
  })),
  'skills.assigned': updated<'skills.assigned'>('agent_assignment', ({ skills }) => ({
    changes: { skills: { to: skills.map(({ id }) => id) } },
  })),
  'action.created': created<'action.created'>('action', ({ action }) => named(action)),
  'action.updated': updated<'action.updated'>('action', named),
  'action.deleted': deleted<'action.deleted'>('action', named),
  'action.secret_rotated': updated<'action.secret_rotated'>(
    'action_secret',
    ({ name, version }) => ({
      name,
      changes: { secret_version: { from: version - 1, to: version } },
    }),
  ),
  'organization_action.created': created<'organization_action.created'>(
    'organization_action',
    ({ action }) => named(action),
  ),
  'organization_action.updated': updated<'organization_action.updated'>(
    'organization_action',
    ({ action }) => ({ name: action.name }),
  ),
  'organization_action.deleted': deleted<'organization_action.deleted'>(
    'organization_action',
    named,
  ),
  'organization_action.secret_changed': updated<'organization_action.secret_changed'>(
    'organization_action',
    ({ what, version }) => ({ changes: { secret_version: { to: version }, secret: { to: what } } }),
  ),
  'organization_action.secret_retired': null,
  'webhook.created': created<'webhook.created'>('webhook', ({ webhook }) => named(webhook)),
  'webhook.updated': updated<'webhook.updated'>('webhook', ({ webhook }) => ({
    name: webhook.name,
  })),
  'webhook.deleted': deleted<'webhook.deleted'>('webhook', named),
  'webhook.secret_rotated': updated<'webhook.secret_rotated'>(
    'webhook_secret',
    ({ name, version }) => ({
      name,
      changes: { secret_version: { from: version - 1, to: version } },
    }),
  ),
  'secret.stored': updated<'secret.stored'>('secret', ({ secret: { name, version, entries } }) => ({
    name,
    ...(version === 1 && { action: 'create' }),
    changes: { version: { to: version }, entries: { to: entries } },
  })),
  'secret.deleted': deleted<'secret.deleted'>('secret', ({ id }) => ({ name: id })),
  'repository_host.stored': updated<'repository_host.stored'>(
    'repository_host',
    ({ host: { name, kind, url, secrets, version } }) => ({
      name,
      ...(version === 1 && { action: 'create' }),
      changes: {
        version: { to: version },
        kind: { to: kind },
        url: { to: url },
        secrets: { to: secrets },
      },
    }),
  ),
  'resolver.configured': updated('definition_resolver'),
  'oauth_origins.replaced': updated('oauth_return_origins'),
  'repository_host.deleted': deleted<'repository_host.deleted'>('repository_host', ({ id }) => ({
    name: id,
  })),
}
/**
 * The audited changes to one record in an entry. `index`: the position in the entry of the first
 * event that changes the record.
 */
interface Told extends Reading {
  readonly action: Rule['action']
  readonly index: number
}
function readingOf(event: Event, entry: Entry): Omit<Told, 'index'> | undefined {
  const rule = Object.hasOwn(rules, event.type)
    ? (rules as Readonly<Record<string, Rule | null>>)[event.type]
    : null
  const reading = rule?.read(event, entry)
  return rule && reading ? { action: rule.action, ...reading } : undefined
}
/** Returns the audited changes of an entry. All updates of one record are merged. */
export function readEntry(entry: Entry): readonly Told[] {
  const all = new Map<string, Told>()
  for (const [index, event] of entry.events.entries()) {
    const reading = readingOf(event, entry)
    if (!reading) continue
    const { action, resource_type, resource_id } = reading
    const key = action === 'update' ? `${resource_type} ${resource_id}` : String(index)
    const before = all.get(key)
    all.set(key, {
      ...reading,
      index: before?.index ?? index,
      name: reading.name ?? before?.name,
      changes: mergeChanges(before?.changes ?? {}, reading.changes ?? {}),
    })
  }
  return [...all.values()]
}
