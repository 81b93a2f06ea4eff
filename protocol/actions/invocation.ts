/**
 * Calls of actions: the facts that the requester and the executor contribute, and the record of the
 * call. The record is stored once, when the job of the call has ended.
 */
import { type Static, Type } from 'typebox'
import { JsonObject, Timestamp } from '../common.ts'
import type { Principal } from '../entry.ts'
import type { Causation } from '../events/sources.ts'
import { prefixes } from '../ids.ts'

/** The principal on whose behalf an action is called, in the form that signed HTTP requests use. */
export interface ActorOf {
  readonly principal_id: string
  readonly principal_type: 'human' | 'agent' | 'service' | 'system'
}
const types: Readonly<Record<Principal['type'], ActorOf['principal_type']>> = {
  user: 'human',
  agent: 'agent',
  service_account: 'service',
  system: 'system',
}
const kinds = ['user', 'agent', 'service_account', 'system'] as const
/** Converts a principal to the form that signed HTTP requests use. */
export const actorOf = ({ id, type }: Principal): ActorOf => ({
  principal_id: id,
  principal_type: types[type],
})
/**
 * Converts the principal of a call to the `Principal` that an `Origin` contains.
 * @param name the display name of the principal, if known.
 */
export function principalOf(
  { principal_id: id, principal_type }: ActorOf,
  name: string | undefined,
): Principal {
  const type = kinds.find((kind) => types[kind] === principal_type) ?? 'system'
  return { type, id, ...(name !== undefined && { name }) }
}

/**
 * The facts that the owner of a job contributes to the call: the reply to its owner query
 * `action_call`.
 */
export interface ActionCall {
  readonly action_name: string
  readonly parameters: JsonObject
  readonly actor: ActorOf
  readonly origin:
    | 'loop_action_step'
    | 'direct_action_invoke'
    | 'agent_tool_call'
    | 'server_internal'
  readonly run_id?: string
  readonly loop_id?: string
  readonly step_key?: string
  readonly session_id?: string
  readonly agent_turn_id?: string
  readonly tool_call_id?: string
  readonly channel_exchange_id?: string
  /** The timeout of one attempt, in milliseconds. */
  readonly timeout?: number
  /** The delay between two attempts, in milliseconds. */
  readonly delay?: number
  /**
   * The causation of source events that the call causes. Absent when the owner of the job runs an
   * earlier release.
   */
  readonly causation?: Causation
}

/** The facts that the executor contributes to the record of a call and sends in its report. */
export interface InvocationFacts {
  readonly action_id: string
  readonly definition_scope: 'platform' | 'project' | 'organization'
  readonly invocation_format: 'legacy' | 'signed_context_v1'
  readonly schema_version?: number
  readonly actor_principal_id: string
  readonly actor_principal_type: ActorOf['principal_type']
  readonly agent_id?: string
  readonly channel_exchange_id?: string
  readonly delivery_id: string
  readonly secret_version: number
  readonly http_status?: number
}

/** Returns the delivery id of a job, which is the same for all its attempts. */
export const deliveryIdOf = (job_id: string): string =>
  `${prefixes.delivery}_${job_id.slice(job_id.indexOf('_') + 1)}`
/** Returns the id of the invocation record of a job. */
export const invocationIdOf = (job_id: string): string =>
  `${prefixes.invocation}_${job_id.slice(job_id.indexOf('_') + 1)}`

const text = Type.Optional(Type.String())
export const Invocation = Type.Object({
  id: Type.String(),
  action_name: Type.String(),
  source: Type.String({ description: 'Origin of the call: loop, direct or agent' }),
  status: Type.String({ description: 'Outcome: success, failed or cancelled' }),
  retry_count: Type.Integer(),
  started_at: Timestamp,
  finished_at: Timestamp,
  run_id: text,
  job_id: text,
  environment_id: text,
  step_name: text,
  action_id: text,
  definition_scope: Type.Optional(Type.Enum(['platform', 'project', 'organization'])),
  invocation_format: text,
  schema_version: Type.Optional(Type.Integer()),
  actor_principal_id: text,
  actor_principal_type: Type.Optional(Type.Enum(['human', 'agent', 'service', 'system'])),
  agent_id: text,
  loop_id: text,
  channel_exchange_id: text,
  agent_turn_id: text,
  session_id: text,
  tool_call_id: text,
  delivery_id: text,
  correlation_id: text,
  secret_version: Type.Optional(Type.Integer()),
  http_status: Type.Optional(Type.Integer({ minimum: 100, maximum: 599 })),
  parameters: Type.Optional(JsonObject),
  output_summary: Type.Optional({
    ...JsonObject,
    description:
      'Result of the call; a long result is replaced by {"truncated": true, "text": beginning of ' +
      'its JSON text}',
  }),
  error_type: text,
  error_message: text,
})
export type Invocation = Static<typeof Invocation>
