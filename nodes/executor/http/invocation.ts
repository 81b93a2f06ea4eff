/** The message that calls an HTTP action, and the facts that are recorded about the call. */
import type { World } from '../../../gateway/ports.ts'
import type { ActionCall, InvocationFacts } from '../../../protocol/actions/invocation.ts'
import type { Target } from './target.ts'

/** Returns the body of a call. */
export function bodyOf(
  world: Pick<World, 'organization' | 'settings'>,
  project: string,
  { id, name, format }: Target,
  call: ActionCall,
): string {
  const {
    actor,
    origin,
    run_id,
    loop_id,
    step_key,
    session_id,
    agent_turn_id,
    tool_call_id,
    channel_exchange_id,
    parameters,
  } = call
  if (format === 'legacy') return JSON.stringify({ run_id, step_key, parameters })
  return JSON.stringify({
    [world.settings.brand.toLowerCase()]: {
      schema_version: 1,
      scope: { org_id: world.organization(), project_id: project },
      action: { id, name },
      actor: {
        ...actor,
        ...(actor.principal_type === 'agent' && { agent_id: actor.principal_id }),
      },
      origin: {
        kind: origin,
        run_id,
        channel_exchange_id,
        loop_id,
        step_key,
        agent_turn_id,
        session_id,
        tool_call_id,
      },
    },
    parameters,
  })
}

/** @param brand the configured brand in lower case. */
export const contentTypeOf = ({ format }: Target, brand: string): string =>
  format === 'legacy'
    ? 'application/json'
    : `application/vnd.${brand}.action-invocation+json; version=1`

/** @param http_status the status of the response, if there is one. */
export const factsOf = (
  target: Target,
  { actor: { principal_id, principal_type }, channel_exchange_id }: ActionCall,
  delivery_id: string,
  http_status: number | undefined,
): InvocationFacts => ({
  action_id: target.id,
  definition_scope: target.scope,
  invocation_format: target.format,
  ...(target.format === 'signed_context_v1' && { schema_version: 1 }),
  actor_principal_id: principal_id,
  actor_principal_type: principal_type,
  ...(principal_type === 'agent' && { agent_id: principal_id }),
  ...(channel_exchange_id !== undefined && { channel_exchange_id }),
  delivery_id,
  secret_version: target.secret.version,
  ...(http_status !== undefined && { http_status }),
})
