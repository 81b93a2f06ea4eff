/**
 * Actions of the organization. The lifecycle of their secrets is in action-secrets.ts.
 *
 * Invariants: names are unique. No secret is stored for a retired or revoked version.
 */
import type {
  OrganizationAction,
  OrganizationActionEvent,
  OrganizationActionWithSecrets,
  organizationActions,
} from '../../../protocol/actions/organization-rows.ts'
import type { SealedSecret } from '../../../protocol/actions/rows.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { type ChangedUrlParts, type SentUrl, withMaskedUrl } from '../../../protocol/masked-url.ts'
import { reservedActionName, secretRef } from '../../../protocol/naming.ts'
import { patch } from '../../../protocol/patch.ts'
import type { Cause, Decision } from '../../actor.ts'
import { changeWithUrl, newUrl, partsAfter, partsOf } from '../../sealed-url.ts'
import type { OrganizationOptions, OrganizationState } from './state.ts'

type Rows = typeof organizationActions
type Decided = Decision<OrganizationActionEvent, OrganizationAction>
/** Maximum number of actions of an organization. */
const MAX_ACTIONS = 1000

const named = (
  { actions }: OrganizationState,
  name: string,
): OrganizationActionWithSecrets | undefined =>
  Object.values(actions).find(({ action }) => action.name === name)
const faultsOf = (
  { actions }: OrganizationState,
  name: string | undefined,
  brand: string,
  self?: string,
): Refusal | undefined => {
  const faults = name === undefined ? [] : reservedActionName(name, brand)
  if (faults.length > 0) return refuseFields(...faults)
  return Object.values(actions).some(({ action }) => action.name === name && action.id !== self)
    ? refuse('already_exists', { field: 'name', name })
    : undefined
}

/**
 * Defines an action. Its first secret is active. The organization never receives the raw secret.
 * The gateway adds it to the reply.
 */
export function createAction(
  { brand }: OrganizationOptions,
  state: OrganizationState,
  input: Input<Rows['organization_action.create']> & SealedSecret & SentUrl,
  cause: Cause,
): Decided {
  const refused = faultsOf(state, input.name, brand)
  if (refused) return refused
  if (Object.keys(state.actions).length >= MAX_ACTIONS)
    return refuse(
      'conflict',
      { limit: MAX_ACTIONS },
      `An organization has at most ${MAX_ACTIONS} actions.`,
    )
  const {
    name,
    title,
    description,
    endpoint_url,
    input_schema,
    output_schema,
    annotations,
    enabled = true,
    sealed,
    url_parts,
  } = input
  const url = newUrl('endpoint_url', endpoint_url, url_parts)
  if (isRefusal(url)) return url
  const [now, id] = [timestamp(cause.at), cause.mint('action')]
  const action: OrganizationAction = {
    id,
    name,
    endpoint_url,
    invocation_format: 'signed_context_v1',
    enabled,
    secret_ref: secretRef(brand, 'org-action', id),
    secret_versions: [{ version: 1, status: 'active', created_at: now, activated_at: now }],
    active_signing_version: 1,
    ...(title && { title }),
    ...(description && { description }),
    ...(input_schema && { input_schema }),
    ...(output_schema && { output_schema }),
    ...(annotations && Object.keys(annotations).length > 0 && { annotations }),
    created_at: now,
    updated_at: now,
  }
  return {
    events: [
      {
        type: 'organization_action.created',
        id,
        action,
        secret: { sealed },
        ...partsOf(url),
      },
    ],
    reply: withMaskedUrl(action, 'endpoint_url'),
  }
}

/** Changes an action. Null and empty values remove a field. */
export function updateAction(
  { brand }: OrganizationOptions,
  state: OrganizationState,
  input: Input<Rows['organization_action.update']> & SentUrl,
  { at }: Cause,
): Decided {
  const kept = getOwn(state.actions, input.action_id)
  if (!kept) return refuse('not_found')
  const refused = faultsOf(state, input.name, brand, kept.action.id)
  if (refused) return refused
  const {
    name,
    title,
    description,
    endpoint_url,
    input_schema,
    output_schema,
    annotations,
    enabled,
  } = input
  const change = changeWithUrl<'endpoint_url', OrganizationAction>({
    field: 'endpoint_url',
    record: kept.action,
    storedParts: kept.url_parts,
    wish: {
      name,
      title,
      description,
      endpoint_url,
      input_schema,
      output_schema,
      enabled,
      annotations: annotations === null ? {} : annotations,
    },
    sentParts: input.url_parts,
    at,
  })
  if (!change) return { events: [], reply: withMaskedUrl(kept.action, 'endpoint_url') }
  if (isRefusal(change)) return change
  return {
    events: [
      {
        type: 'organization_action.updated',
        id: kept.action.id,
        action: change.patch,
        changes: change.changes,
        ...(change.url_parts !== undefined && { url_parts: change.url_parts }),
      },
    ],
    reply: change.next,
  }
}

/** Deletes an action with its secrets. */
export function deleteAction(
  { actions }: OrganizationState,
  { action_id }: Input<Rows['organization_action.delete']>,
): Decision<OrganizationActionEvent, undefined> {
  const kept = getOwn(actions, action_id)
  return kept
    ? {
        events: [{ type: 'organization_action.deleted', id: action_id, name: kept.action.name }],
        reply: undefined,
      }
    : refuse('not_found')
}

/** Returns the secrets of versions that are neither retired nor revoked. */
const living = (
  secrets: OrganizationActionWithSecrets['secrets'],
  { secret_versions }: OrganizationAction,
): OrganizationActionWithSecrets['secrets'] =>
  Object.fromEntries(
    Object.entries(secrets).filter(([version]) =>
      secret_versions.some(
        (one) =>
          String(one.version) === version && one.status !== 'retired' && one.status !== 'revoked',
      ),
    ),
  )
const patched = (
  state: OrganizationState,
  {
    id,
    action,
  }: Pick<
    Extract<OrganizationActionEvent, { type: 'organization_action.secret_retired' }>,
    'id' | 'action'
  >,
  {
    secrets = {},
    url_parts,
  }: Partial<Pick<OrganizationActionWithSecrets, 'secrets'>> & ChangedUrlParts = {},
): OrganizationState => {
  const kept = getOwn(state.actions, id)
  if (!kept) return state
  const next = patch(kept.action, action)
  state.actions[id] = {
    action: next,
    secrets: living({ ...kept.secrets, ...secrets }, next),
    ...partsAfter(kept.url_parts, url_parts),
  }
  return state
}
type On<T extends OrganizationActionEvent['type']> = Extract<OrganizationActionEvent, { type: T }>
/** Reducers for the events of actions. */
export const evolveActions = {
  'organization_action.created': (
    state: OrganizationState,
    { id, action, secret, url_parts }: On<'organization_action.created'>,
  ): OrganizationState => {
    state.actions[id] = { action, secrets: { 1: secret }, ...(url_parts && { url_parts }) }
    return state
  },
  'organization_action.updated': (
    state: OrganizationState,
    event: On<'organization_action.updated'>,
  ): OrganizationState =>
    patched(state, event, event.url_parts === undefined ? {} : { url_parts: event.url_parts }),
  'organization_action.deleted': (
    state: OrganizationState,
    { id }: On<'organization_action.deleted'>,
  ): OrganizationState => {
    delete state.actions[id]
    return state
  },
  'organization_action.secret_changed': (
    state: OrganizationState,
    event: On<'organization_action.secret_changed'>,
  ): OrganizationState =>
    patched(state, event, event.secret && { secrets: { [event.version]: event.secret } }),
  'organization_action.secret_retired': (
    state: OrganizationState,
    event: On<'organization_action.secret_retired'>,
  ): OrganizationState => patched(state, event),
}

/**
 * Returns the record and the sealed secrets of the action with this name, or undefined if there is
 * no such action. An executor needs them to call the action.
 */
export const actionOf = (
  state: OrganizationState,
  { name }: { readonly name: string },
): OrganizationActionWithSecrets | undefined => named(state, name)
