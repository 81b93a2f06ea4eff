/**
 * The event catalog for authors of triggers and waits. For each event type, it contains a
 * description, the fields of the payload, and the fields of the routing data (`meta`). `types.ts`,
 * not this file, lists the published types.
 */

import { integrationSources, type ProviderName } from './integrations.ts'
import type { EventCatalog } from './rows.ts'
import { capabilities, type EmittedType, emittedTypes, reservedPrefixes } from './types.ts'

/**
 * Names of fields, separated by spaces. `name` is a required string, `name?` is an optional string,
 * and `name:type` is a field of the given JSON type.
 */
type Members = string
interface Described {
  readonly about: string
  readonly event: Members
  readonly meta: Members
}

const run = (about: string, event: Members): Described => ({
  about,
  event: `run_id loop_id? loop_name? definition_id? name? external_id? status ${event} started_at? completed_at`,
  meta: 'run_id loop_id? definition_id?',
})
const check = (about: string): Described => ({
  about,
  event: 'run_id loop_id? definition_id? step verdict on_fail failed:array checks?:array',
  meta: 'run_id loop_id? definition_id?',
})
const row = (about: string, more = ''): Described => ({
  about,
  event: `table_id table_name row_id data:object version:integer${more}`,
  meta: 'table_name table_id row_id',
})

const described: Readonly<Record<EmittedType, Described>> = {
  'artifact.created': {
    about: 'An artifact was uploaded, by a worker of a run or by a client',
    event:
      'artifact_id name content_type step? loop_run_id? kind size_bytes:integer sha256 visibility',
    meta: 'artifact_id loop_run_id? kind content_type',
  },
  'check.passed': check('A check step has passed'),
  'check.failed': check('A check step has failed'),
  'email.received': {
    about: 'E-mail arrived at the address of an agent',
    event:
      'message_id agent_id from to:array cc:array subject text html? ' +
      'truncated?:boolean in_reply_to? ' +
      'references:array attachments:array authentication:object ' +
      'automatic:boolean received_at',
    meta: 'agent_id',
  },
  'http_trigger.received': {
    about: 'A request reached the URL of an HTTP trigger; the event is its body',
    event: '',
    meta: 'trigger_id http_handle',
  },
  'interaction.created': {
    about: 'An interaction was created',
    event:
      'interaction_id kind status title description? ' +
      'target_user_ids:array consumer_kind run_id? session_id? expires_at? created_by? ' +
      'context?:object spec?:object',
    meta: 'interaction_id kind target_user_ids:array',
  },
  'interaction.resolved': {
    about: 'An interaction was answered or cancelled, or has expired',
    event:
      'interaction_id kind status consumer_kind outcome?:any comment? ' +
      'responder?:object responder_id? resolving_response_id? resolved_by? cancel_reason? ' +
      'run_id? session_id?',
    meta: 'interaction_id kind status consumer_kind responder_id? resolving_response_id?',
  },
  'loop.auto_paused': {
    about: 'A loop was paused, because runs in a row had failed or triggers started too many',
    event: 'run_id loop_id consecutive_failures?:integer threshold?:integer reason?',
    meta: 'run_id loop_id',
  },
  'run.completed': run('A run has completed', 'output:object'),
  'run.failed': run('A run has failed', 'error error_type? step? stop_reason'),
  'run.cancelled': run('A run was cancelled', 'reason? stop_reason'),
  'run.budget_exceeded': {
    about: 'A run has spent its budget',
    event:
      'run_id loop_id? definition_id? step? ' +
      'credit_spent:number credit_budget:number percent_used:integer',
    meta: 'run_id loop_id? definition_id?',
  },
  'run.progress_stalled': {
    about: 'An agent called a tool too often with the same arguments',
    event:
      'run_id loop_id? definition_id? step ' +
      'tool duplicate_calls:integer limit:integer attempt?:integer',
    meta: 'run_id loop_id? definition_id?',
  },
  'session.message.created': {
    about: 'A message was posted in a session of an agent',
    event:
      'session_id agent_id message_id role sequence:integer turn_id? content:array session_key?',
    meta: 'session_id agent_id message_id role',
  },
  'table.row.inserted': row('A row was added'),
  'table.row.updated': row('A row was changed', ' changed:array previous:object'),
  'table.row.deleted': row('A row was deleted'),
}

function schemaOf(members: Members): Record<string, unknown> {
  const parts = members
    .split(' ')
    .filter((part) => part !== '')
    .map((part) => {
      const [name = '', type = 'string'] = part.split(':')
      return { name: name.replace('?', ''), optional: name.endsWith('?'), type }
    })
  const required = parts.filter(({ optional }) => !optional).map(({ name }) => name)
  return {
    type: 'object',
    properties: Object.fromEntries(
      parts.map(({ name, type }) => [name, type === 'any' ? {} : { type }]),
    ),
    ...(required.length > 0 && { required }),
  }
}

const EMAIL = 'email'
const NOT_READY = { readiness: 'needs_setup', readiness_reason: 'not_implemented' } as const

/**
 * Returns the catalog entry of a source. A source is ready if the service publishes at least one of
 * its types. The entry of a ready source lists only published types. Otherwise, the entry lists the
 * planned types.
 */
function sourceOf(prefix: string, display_name: string): EventCatalog['items'][number] {
  const types = Object.entries(described).filter(([name]) => name.startsWith(`${prefix}.`))
  const ready = types.filter(([name]) => emittedTypes.has(name))
  return {
    prefix,
    kind: 'capability',
    display_name,
    ...(ready.length > 0 ? { readiness: 'ready' } : NOT_READY),
    event_types: (ready.length > 0 ? ready : types).map(([name, { about, event, meta }]) => ({
      name,
      description: about,
      event_schema: schemaOf(event),
      meta_schema: schemaOf(meta),
    })),
  }
}
/**
 * Returns the event catalog of a project.
 * @param inboundMail whether the installation receives email; otherwise the prefix for email is
 *   reserved.
 * @param connected providers whose webhooks the project receives.
 */
export const eventCatalog = (
  inboundMail: boolean,
  connected: readonly ProviderName[] = [],
): EventCatalog => ({
  items: Object.entries(capabilities)
    .filter(([prefix]) => prefix !== EMAIL || inboundMail)
    .map(([prefix, display_name]) => sourceOf(prefix, display_name))
    .concat(integrationSources(connected)),
  reserved_prefixes: [
    ...Object.entries(reservedPrefixes),
    ...(inboundMail ? [] : [[EMAIL, 'capability'] as const]),
  ].map(([prefix, kind]) => ({ prefix, kind })),
})
