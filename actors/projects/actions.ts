/**
 * The actions of a project: their records and secrets. Workers and executors perform the calls.
 *
 * Invariants: names are unique in the project and never change. An HTTP action has exactly one
 * secret, which is stored sealed. Calls are signed with the newest version of the secret.
 */

import type {
  Action,
  ActionEvent,
  ActionWithSecret,
  actions,
  RemovalExtra,
  SealedSecret,
} from '../../protocol/actions/rows.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input, Reply } from '../../protocol/contract.ts'
import { type FieldError, isRefusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { type SentUrl, withMaskedUrl } from '../../protocol/masked-url.ts'
import { reservedActionName, reservedTags, secretRef } from '../../protocol/naming.ts'
import { patch } from '../../protocol/patch.ts'
import { refuseBeyondLimit } from '../../protocol/projects/limits.ts'
import type { Cause, Decision } from '../actor.ts'
import { changeWithUrl, newUrl, partsAfter, partsOf } from '../sealed-url.ts'
import { refuseCalled } from './loops.ts'
import { actionNamed, type ProjectOptions, type ProjectState } from './state.ts'

type Rows = typeof actions
type Decided<R> = Decision<ActionEvent, R>

/**
 * Defines an action. The project never receives the raw secret. The gateway adds it to the reply.
 */
export function createAction(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['action.create']> & SealedSecret & SentUrl,
  cause: Cause,
): Decided<Action> {
  const faults = [...reservedActionName(input.name, brand), ...reservedTags(input.tags, brand)]
  if (faults.length > 0) return refuseFields(...faults)
  if (actionNamed(state, input.name))
    return refuse('already_exists', { field: 'name', name: input.name })
  const full = refuseBeyondLimit('action', Object.keys(state.actions).length)
  if (full) return full
  const {
    name,
    title,
    description,
    endpoint_kind = 'http',
    invocation_format = 'legacy',
    endpoint_url,
    input_schema,
    output_schema,
    annotations,
    tags,
    sealed,
    url_parts,
  } = input
  const url = endpoint_url === undefined ? {} : newUrl('endpoint_url', endpoint_url, url_parts)
  if (isRefusal(url)) return url
  const now = timestamp(cause.at)
  const action: Action = {
    id: cause.mint('action'),
    name,
    endpoint_kind,
    invocation_format,
    ...(title && { title }),
    ...(description && { description }),
    ...(endpoint_url !== undefined && { endpoint_url }),
    ...(input_schema && { input_schema }),
    ...(output_schema && { output_schema }),
    ...(annotations && Object.keys(annotations).length > 0 && { annotations }),
    ...(tags && Object.keys(tags).length > 0 && { tags }),
    created_at: now,
    updated_at: now,
  }
  return {
    events: [
      {
        type: 'action.created',
        id: action.id,
        action,
        ...(endpoint_kind === 'http' && { secret: { sealed } }),
        ...partsOf(url),
      },
    ],
    reply: withMaskedUrl(action, 'endpoint_url'),
  }
}

/** Changes an action. Null and empty values remove a field. */
export function updateAction(
  state: ProjectState,
  input: Input<Rows['action.update']> & SentUrl,
  { at }: Cause,
): Decided<Action> {
  const kept = actionNamed(state, input.action_name)
  if (!kept) return refuse('not_found')
  const {
    title,
    description,
    invocation_format,
    endpoint_url,
    input_schema,
    output_schema,
    annotations,
    tags,
  } = input
  const faults: FieldError[] = []
  if (kept.action.endpoint_kind === 'worker')
    for (const field of ['endpoint_url', 'invocation_format'] as const)
      if (input[field] !== undefined)
        faults.push({ field, message: 'is not allowed for the kind worker' })
  if (faults.length > 0) return refuseFields(...faults)
  const change = changeWithUrl<'endpoint_url', Action>({
    field: 'endpoint_url',
    record: kept.action,
    storedParts: kept.url_parts,
    wish: {
      title,
      description,
      invocation_format,
      endpoint_url,
      input_schema,
      output_schema,
      annotations: annotations === null ? {} : annotations,
      tags,
    },
    sentParts: input.url_parts,
    at,
  })
  if (!change) return { events: [], reply: withMaskedUrl(kept.action, 'endpoint_url') }
  if (isRefusal(change)) return change
  return {
    events: [
      {
        type: 'action.updated',
        id: kept.action.id,
        name: kept.action.name,
        action: change.patch,
        changes: change.changes,
        ...(change.url_parts !== undefined && { url_parts: change.url_parts }),
      },
    ],
    reply: change.next,
  }
}

/**
 * Deletes an action. An HTTP action also needs `project.admin`, because another action could then
 * be created under its name with another address. Refuses with `conflict` while active loops call
 * it. An attempt in progress completes. A later attempt uses the organization's action with this
 * name, or waits for a worker.
 */
export function deleteAction(
  state: ProjectState,
  input: Input<Rows['action.delete']> & RemovalExtra,
): Decided<undefined> {
  const kept = actionNamed(state, input.action_name)
  if (!kept) return refuse('not_found')
  const { id, name, endpoint_kind } = kept.action
  if (endpoint_kind === 'http' && input.refused_http) return input.refused_http
  const called = refuseCalled(state, name)
  if (called) return called
  return { events: [{ type: 'action.deleted', id, name }], reply: undefined }
}

/** Replaces the secret of an HTTP action. */
export function rotateSecret(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Pick<Input<Rows['action.rotate_secret']>, 'action_name'> & SealedSecret,
): Decided<Reply<Rows['action.rotate_secret']>> {
  const kept = actionNamed(state, input.action_name)
  if (!kept) return refuse('not_found')
  const { action, secret } = kept
  if (!secret)
    return refuseFields({
      field: 'action_name',
      message: 'is executed by workers, so its calls are not signed',
      actual: action.name,
    })
  const version = secret.version + 1
  return {
    events: [
      {
        type: 'action.secret_rotated',
        id: action.id,
        name: action.name,
        version,
        secret: { sealed: input.sealed },
      },
    ],
    reply: {
      secret_ref: secretRef(brand, 'action', action.name),
      secret_version: version,
    } as Reply<Rows['action.rotate_secret']>,
  }
}

/** Reducers for the events of actions. */
export const evolveActions = {
  'action.created': (
    state: ProjectState,
    { id, action, secret, url_parts }: Extract<ActionEvent, { type: 'action.created' }>,
  ): ProjectState => {
    state.actions[id] = {
      action,
      ...(secret && { secret: { ...secret, version: 1 } }),
      ...(url_parts && { url_parts }),
    }
    return state
  },
  'action.updated': (
    state: ProjectState,
    { id, action, url_parts }: Extract<ActionEvent, { type: 'action.updated' }>,
  ): ProjectState => {
    const kept = getOwn(state.actions, id)
    if (!kept) return state
    const { url_parts: before, ...rest } = kept
    state.actions[id] = {
      ...rest,
      action: patch(kept.action, action),
      ...partsAfter(before, url_parts),
    }
    return state
  },
  'action.deleted': (state: ProjectState, { id }: { readonly id: string }): ProjectState => {
    delete state.actions[id]
    return state
  },
  'action.secret_rotated': (
    state: ProjectState,
    { id, version, secret }: Extract<ActionEvent, { type: 'action.secret_rotated' }>,
  ): ProjectState => {
    const kept = getOwn(state.actions, id)
    if (kept) state.actions[id] = { ...kept, secret: { ...secret, version } }
    return state
  },
}

/**
 * Returns the record and the sealed secret of the action with this name, or undefined if there is
 * no such action. An executor needs them to call the action.
 */
export const actionOf = (
  state: ProjectState,
  { name }: { readonly name: string },
): ActionWithSecret | undefined => actionNamed(state, name)
