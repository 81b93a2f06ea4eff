/**
 * Toolkits of a project. Names need not be unique. The service's own toolkits are not stored here
 * and cannot be changed.
 */

import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { reservedTags } from '../../protocol/naming.ts'
import { refuseBeyondLimit } from '../../protocol/projects/limits.ts'
import type { toolkits as rows } from '../../protocol/toolkits/rows.ts'
import {
  isSystemToolkit,
  selectorOf,
  type Toolkit,
  type ToolkitEvent,
} from '../../protocol/toolkits/schema.ts'
import type { Cause, Decision } from '../actor.ts'
import { changeOf } from '../configuration.ts'
import type { ProjectOptions, ProjectState } from './state.ts'

type Rows = typeof rows
type Decided<R> = Decision<ToolkitEvent, R>

/** Creates a toolkit. Refuses reserved tags, and a toolkit beyond the limit. */
export function createToolkit(
  { brand }: ProjectOptions,
  { toolkits }: ProjectState,
  input: Input<Rows['toolkit.create']>,
  cause: Cause,
): Decided<Toolkit> {
  const faults = reservedTags(input.tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const full = refuseBeyondLimit('toolkit', Object.keys(toolkits).length)
  if (full) return full
  const now = timestamp(cause.at)
  const { name, description, tags } = input
  const actions = (input.actions ?? []).map(selectorOf)
  const base: Toolkit = {
    id: cause.mint('toolkit'),
    name,
    source: 'project',
    actions,
    created_by: cause.principal.id,
    created_at: now,
    updated_at: now,
  }
  const toolkit = changeOf<Toolkit>(base, { description, tags }, cause.at)?.next ?? base
  return { events: [{ type: 'toolkit.created', id: toolkit.id, toolkit }], reply: toolkit }
}

const ownToolkit = ({ toolkits }: ProjectState, id: string): Toolkit | Refusal =>
  isSystemToolkit(id)
    ? refuse('forbidden', undefined, 'Toolkits of the service cannot be changed.')
    : (getOwn(toolkits, id) ?? refuse('not_found'))

/** Replaces a toolkit as a whole: fields that the request omits are removed. */
export function replaceToolkit(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['toolkit.replace']>,
  cause: Cause,
): Decided<Toolkit> {
  const toolkit = ownToolkit(state, input.id)
  if ('refused' in toolkit) return toolkit
  const faults = reservedTags(input.tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const { name, description = '', tags = {} } = input
  const actions = (input.actions ?? []).map(selectorOf)
  const change = changeOf<Toolkit>(toolkit, { name, description, tags }, cause.at)
  // An empty list of actions is a value and does not remove the field.
  const other = JSON.stringify(actions) !== JSON.stringify(toolkit.actions)
  if (!change && !other) return { events: [], reply: toolkit }
  const set = {
    updated_by: cause.principal.id,
    updated_at: timestamp(cause.at),
    ...(other && { actions }),
  }
  return {
    events: [
      {
        type: 'toolkit.updated',
        id: toolkit.id,
        toolkit: { ...change?.patch, ...set },
        changes: {
          ...change?.changes,
          ...(other && { actions: { from: toolkit.actions, to: actions } }),
        },
      },
    ],
    reply: { ...(change?.next ?? toolkit), ...set },
  }
}

/** Deletes a toolkit, and removes it from all agents. */
export function deleteToolkit(
  state: ProjectState,
  { id }: Input<Rows['toolkit.delete']>,
): Decided<undefined> {
  const toolkit = ownToolkit(state, id)
  return 'refused' in toolkit
    ? toolkit
    : { events: [{ type: 'toolkit.deleted', id, name: toolkit.name }], reply: undefined }
}
