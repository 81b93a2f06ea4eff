/** Changes that clients make to the record of an environment, and destruction on request. */

import { timestamp } from '../../protocol/common.ts'
import { scopeKey } from '../../protocol/environments/commands.ts'
import type { EnvironmentEvent } from '../../protocol/environments/events.ts'
import type { Environment, UpdateEnvironment } from '../../protocol/environments/schema.ts'
import { refuse } from '../../protocol/errors.ts'
import { type Patch, patch } from '../../protocol/patch.ts'
import type { Cause, Decision } from '../actor.ts'
import { advance } from './advance.ts'
import { type EnvironmentSettings, emit, finish, newDraft } from './draft.ts'
import { type EnvironmentState, shownEnvironment } from './state.ts'
import { destroy } from './transitions.ts'

const missing = () => refuse('not_found', { resource: 'environment' })

/**
 * Changes scope, owner and tags. A change of scope or owner also changes the `scopeKey` under which
 * the name of the environment is held. The gateway takes the name under the new key before it sends
 * this command. The commit of this command releases the old key. If the record has changed since
 * the gateway took the name (`as_of`), the new key may have been released too. The command is then
 * refused, and the gateway must take the name again.
 */
export function update(
  state: EnvironmentState,
  input: UpdateEnvironment & { readonly as_of?: string },
  cause: Cause,
  settings: EnvironmentSettings,
): Decision<EnvironmentEvent, Environment> {
  if (!state) return missing()
  if (state.record.status === 'destroyed')
    return refuse('conflict', { status: 'destroyed' }, 'The environment is destroyed.')
  const { tags, as_of } = input
  if (as_of !== undefined && as_of !== state.record.updated_at)
    return refuse('conflict', { record: 'changed' }, 'The record was changed by another request.')
  const wanted: Patch<Environment> = {
    ...(input.scope !== undefined && { scope: input.scope }),
    ...(input.owned_by !== undefined && { owned_by: input.owned_by }),
    ...(tags !== undefined && { tags: Object.keys(tags).length === 0 ? null : tags }),
  }
  const after = patch(state.record, wanted)
  const members = ['scope', 'owned_by', 'tags'] as const
  const changed = members.filter(
    (name) => JSON.stringify(state.record[name]) !== JSON.stringify(after[name]),
  )
  const draft = newDraft(state, cause, settings)
  if (changed.length > 0)
    emit(draft, {
      type: 'environment.updated',
      id: state.record.id,
      record: {
        ...Object.fromEntries(changed.map((name) => [name, after[name] ?? null])),
        updated_at: timestamp(cause.at),
      },
      changes: Object.fromEntries(
        changed.map((name) => [name, { from: state.record[name], to: after[name] }]),
      ),
    })
  if (state.origin.holder !== undefined && scopeKey(state.record) !== scopeKey(after))
    draft.tells.push({
      to: { kind: 'environment_name', id: state.origin.holder },
      name: 'environment_name.keep',
      input: { environment_id: state.record.id, key: scopeKey(after) },
    })
  return finish(draft, shownEnvironment(draft.state))
}

/** Destroys the environment. A repeated request returns the current record. */
export function remove(
  state: EnvironmentState,
  cause: Cause,
  settings: EnvironmentSettings,
): Decision<EnvironmentEvent, Environment> {
  if (!state) return missing()
  const draft = newDraft(state, cause, settings)
  destroy(draft)
  advance(draft)
  return finish(draft, shownEnvironment(draft.state))
}
