/**
 * The table of all refusals. Clients branch on the code. The status, the default message and the
 * retryability of a code are defined only here. Bugs cause exceptions, not refusals.
 */
interface ErrorFacts {
  readonly status: number
  /**
   * The default message: the fault and, where it helps, the next step. It is used when the refusal
   * has no `message`.
   */
  readonly message: string
  /** Whether the same request, unchanged, can succeed later. */
  readonly retryable?: true
}

export const errors = {
  bad_request: { status: 400, message: 'The request is not valid; see details.fields.' },
  unauthorized: { status: 401, message: 'The credential is missing, unknown, revoked or expired.' },
  permission_denied: {
    status: 403,
    message: 'The credential lacks the permission named in details.permission.',
  },
  forbidden: { status: 403, message: 'The credential is not valid here.' },
  not_found: { status: 404, message: 'There is no such record.' },
  method_not_allowed: {
    status: 405,
    message: 'The path does not support this method; see the Allow header.',
  },
  conflict: { status: 409, message: 'The record is not in a state that allows this.' },
  precondition_failed: {
    status: 412,
    message: 'The record has changed since it was read; read it again.',
  },
  already_exists: { status: 409, message: 'A record with this name already exists.' },
  idempotency_key_conflict: {
    status: 409,
    message:
      'This idempotency key was already used; see details. Use a new key for another request.',
  },
  principal_has_no_roles: {
    status: 409,
    message: 'The principal has no role; assign one or set allow_unassigned_principal.',
  },
  external_identity_conflict: {
    status: 409,
    message: 'The external reference belongs to a project with another identity.',
  },
  project_archived: {
    status: 409,
    message: 'The external reference belongs to an archived project.',
  },
  run_not_suspended: { status: 409, message: 'Only a suspended run can be resumed.' },
  run_not_failed: { status: 409, message: 'Only a failed run can be retried.' },
  run_version_superseded: {
    status: 409,
    message: 'The definition has a newer version; start a new run.',
  },
  limit_not_raised: {
    status: 400,
    message: 'The run was stopped by a limit that this request does not raise.',
  },
  not_channel_member: {
    status: 403,
    message: 'Only members of the channel may do this; join it first.',
  },
  already_member: { status: 409, message: 'The principal is already a member of the channel.' },
  channel_archived: {
    status: 409,
    message: 'The channel is archived; set archived_at to null first.',
  },
  last_admin: {
    status: 409,
    message:
      'The last administrator of a channel that has other members cannot leave it; ' +
      'add another one first, or delete the channel.',
  },
  pin_limit_reached: {
    status: 409,
    message: 'The channel has the maximum number of pinned messages; unpin one first.',
  },
  session_turn_active: {
    status: 409,
    message: 'The session has a turn that has not ended; wait for it, or nudge it. See details.',
  },
  turn_owned_by_run: { status: 409, message: 'The turn belongs to a run; cancel the run.' },
  nudge_already_delivered: {
    status: 409,
    message: 'The nudge was delivered already; see details.nudge.',
  },
  agent_inactive: {
    status: 409,
    message: 'The agent is inactive; set its status to active first.',
  },
  unknown_agent: {
    status: 409,
    message: 'The definition resolver of the organization does not know the agent.',
  },
  // Not `retryable`: the configuration already determines how a turn continues when the resolver is
  // unavailable, so the job is not repeated.
  definition_resolver_unavailable: {
    status: 503,
    message:
      'The definition resolver of the organization gave no valid answer, and no earlier ' +
      'definition may be used; see details.reason.',
  },
  session_agent_ref_conflict: { status: 400, message: 'Give agent_id or agent_name, not both.' },
  session_key_scope_required: {
    status: 400,
    message: 'A session key is unique only within one agent; give agent_id or agent_name with it.',
  },
  loop_paused: { status: 409, message: 'The loop is paused; set its status to active first.' },
  loop_not_runnable: {
    status: 409,
    message: 'The loop is a draft, or has no steps; add steps and set its status to active first.',
  },
  budget_exhausted: {
    status: 409,
    message:
      'The loop has spent its daily budget; raise the budget, or wait until enough of the spending ' +
      'is older than 24 hours.',
  },
  invalid_signature: {
    status: 401,
    message: 'The signature is missing or does not match the body.',
  },
  skill_in_use: {
    status: 409,
    message:
      'The skill is assigned to agents, or is being assigned to one; remove it from them first.',
  },
  memory_cursor_expired: {
    status: 410,
    message:
      'Changes after this cursor are no longer kept; read the feed without it, then the entries.',
  },
  memory_semantic_search_unavailable: {
    status: 503,
    message: 'This service has no index for semantic search; use search_mode=keyword.',
  },
  artifact_conflict: {
    status: 409,
    message:
      'The upload with this idempotency key has not ended, or its artifact was deleted; repeat the ' +
      'request later, or use a new key.',
  },
  artifact_quota_exceeded: {
    status: 409,
    message: 'The artifacts of the organization would exceed its storage quota; delete some first.',
  },
  environment_leased: {
    status: 409,
    message:
      'The environment is leased to another holder; see details.holder and details.expires_at.',
    retryable: true,
  },
  environment_not_ready: {
    status: 409,
    message: 'The environment is not in a state in which it can be used; see details.status.',
  },
  environment_worker_unavailable: {
    status: 409,
    message: 'No worker of the environment can answer; start one and repeat the request.',
    retryable: true,
  },
  environment_worker_conflict: {
    status: 409,
    message: 'Another worker of the environment is connected; stop it, or try again later.',
    retryable: true,
  },
  lease_lost: {
    status: 409,
    message: 'The lease token is unknown, or its lease has ended; stop the work under it.',
  },
  blueprint_resource_protected: {
    status: 409,
    message:
      'A blueprint protects this resource; change the blueprint and apply it, or stop its ' +
      'protection.',
  },
  blueprint_ambiguous_name: {
    status: 409,
    message: 'Several resources have this name; rename all of them except the one to bind.',
  },
  blueprint_immutable_field: {
    status: 409,
    message: 'The field named in details.field cannot change after its resource was created.',
  },
  blueprint_owned_elsewhere: {
    status: 409,
    message: 'The resource belongs to another blueprint; see details.',
  },
  blueprint_plan_outdated: {
    status: 409,
    message: 'The project has changed since the plan was made; make a new plan.',
  },
  blueprint_busy: {
    status: 409,
    message: 'Another request is changing this blueprint; repeat the request.',
    retryable: true,
  },
  table_schema_immutable: {
    status: 409,
    message: 'The schema of a table cannot change in this way; see details.fields.',
  },
  table_semantic_search_unavailable: {
    status: 503,
    message: 'This service has no index for semantic search; use mode=keyword.',
  },
  artifact_storage_unavailable: {
    status: 503,
    message: 'Files cannot be stored or read right now; retry after Retry-After seconds.',
    retryable: true,
  },
  inbox_unavailable: {
    status: 409,
    message:
      'This service has no domain for the addresses of agents; its operator can set ' +
      'BATON_INBOX_DOMAIN.',
  },
  payload_too_large: {
    status: 413,
    message: 'The request body is larger than this endpoint accepts.',
  },
  unsupported_media_type: { status: 415, message: 'Send the body as application/json.' },
  range_not_satisfiable: {
    status: 416,
    message: 'The requested range begins after the end of the file.',
  },
  rate_limit_exceeded: {
    status: 429,
    message: 'Too many requests; wait for Retry-After seconds.',
    retryable: true,
  },
  project_capacity_reached: {
    status: 429,
    message: 'The organization has reached its project limit.',
  },
  internal: {
    status: 500,
    message: 'An internal error occurred in the service; the request id is in X-Request-ID.',
    retryable: true,
  },
  storage_full: {
    status: 503,
    message:
      'The storage of the service is full: changes are refused, reading works. The operator must ' +
      'free space.',
    retryable: true,
  },
  journal_damaged: {
    status: 503,
    message:
      'Stored entries are missing: changes are refused until the operator has restored them.',
    retryable: true,
  },
  service_unavailable: {
    status: 503,
    message: 'The service cannot answer right now; retry after Retry-After seconds.',
    retryable: true,
  },
} as const satisfies Record<string, ErrorFacts>

/** A refusal code, sent as `error.code`. */
export type Code = keyof typeof errors

/** One invalid field of a request; `field` is a path such as `spec.steps[0].config`. */
export interface FieldError {
  readonly field: string
  readonly message: string
  readonly expected?: unknown
  readonly actual?: unknown
}

/**
 * An expected failure as data, which an actor, a query or the gateway returns instead of a reply.
 */
export interface Refusal {
  readonly refused: Code
  readonly message?: string
  readonly details?: Readonly<Record<string, unknown>>
}

/**
 * Returns a refusal with details for the caller. `message` replaces the default message where the
 * default is too general.
 */
export const refuse = (
  refused: Code,
  details?: Readonly<Record<string, unknown>>,
  message?: string,
): Refusal => ({
  refused,
  ...(details && { details }),
  ...(message !== undefined && { message }),
})

/**
 * Returns a refusal because of invalid fields: 400 `bad_request` with `details.fields`. The message
 * describes the first fault.
 */
export function refuseFields(...faults: FieldError[]): Refusal {
  const [first] = faults
  return refuse('bad_request', { fields: faults }, first && `${first.field}: ${first.message}`)
}

/** Whether a value is a refusal. */
export const isRefusal = (answer: unknown): answer is Refusal =>
  typeof answer === 'object' && answer !== null && 'refused' in answer

/**
 * Whether a refusal is a fault of the service, not of the request, so that the outcome of a command
 * can be unknown. A code that this process does not know also counts: during an upgrade, an owner
 * of a newer release may return one.
 */
export const isServiceFault = ({ refused }: Refusal): boolean =>
  !Object.hasOwn(errors, refused) || errors[refused].status >= 500

/** Returns the wire form of a refusal: `{error: {code, message, details?}}`. */
export function errorBody({ refused, message, details }: Refusal) {
  return {
    error: {
      code: refused,
      message: message ?? errors[refused].message,
      ...(details && { details }),
    },
  }
}
