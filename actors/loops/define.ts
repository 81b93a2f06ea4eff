/**
 * Creation, change and deletion of loops. A field that the request contains replaces the whole
 * stored field. A change to the loop's behavior creates the next version, which later starts use.
 * Existing runs keep the version with which they were opened.
 */

import { timestamp } from '../../protocol/common.ts'
import { type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import {
  authoredIn,
  changedStatus,
  changeFaults,
  newStatus,
  newStatusFaults,
  type SecretKeys,
} from '../../protocol/loops/changes.ts'
import type { Derived, LoopCommands, LoopEvent, Saving } from '../../protocol/loops/events.ts'
import type { CreateLoop, UpdateLoop } from '../../protocol/loops/rows.ts'
import {
  type Authored,
  authoring,
  httpHandle,
  type Loop,
  metadata,
  type Trigger,
} from '../../protocol/loops/schema.ts'
import { reservedTags } from '../../protocol/naming.ts'
import { isEmpty } from '../../protocol/rules/json-object.ts'
import type { Cause, Decision } from '../actor.ts'
import { changeOf } from '../configuration.ts'
import { admitWaiting, dismiss } from './admit.ts'
import { updateHalts } from './budget.ts'
import { type Draft, emit, emptyDecision, type LoopOptions, newDraft, withReply } from './draft.ts'
import { type ExistingLoop, isExisting, type LoopState } from './state.ts'
import { derivedEvents, handlesOf, materialize } from './triggers.ts'

type Of<K extends string> = Partial<Record<K, unknown>>

const chosen = <K extends string>(body: object, names: Readonly<Record<K, unknown>>): Of<K> =>
  Object.fromEntries(
    Object.keys(names).flatMap((name) => {
      const value = getOwn(body as Readonly<Record<string, unknown>>, name)
      return value === undefined ? [] : [[name, value]]
    }),
  ) as Of<K>
/**
 * If both templates of the run name are empty, replaces the run name with an empty object, which
 * removes the field.
 */
const withoutBlanks = <T extends { run_name?: unknown }>(body: T): T => {
  const name = body.run_name as { template: string; description_template?: string } | undefined
  return name && name.template === '' && !name.description_template
    ? { ...body, run_name: {} }
    : body
}
/**
 * Refuses the request if a trigger has a handle that the loop does not use yet and for which there
 * is no valid reservation.
 */
function unreserved(
  triggers: readonly Trigger[] = [],
  state: LoopState,
  reserved: Saving['reserved'] = {},
  at: number,
): Refusal | undefined {
  const held = handlesOf(state.record, state.trigger_ids)
  const lost = triggers.some((trigger) => {
    const handle = httpHandle(trigger)
    return handle !== undefined && !held.has(handle) && (getOwn(reserved, handle) ?? 0) < at
  })
  return lost
    ? refuse(
        'service_unavailable',
        undefined,
        'The reservation of the handle has expired; send the request again.',
      )
    : undefined
}
/** Returns the keys of the secrets that the loop and the request contain. */
const secretKeys = (given: Saving['secrets'] = {}, before: LoopState['secrets']): SecretKeys => ({
  stored: new Set(Object.keys(before)),
  placeholders: Object.keys(given).filter((key) => given[key] === true),
})
/**
 * Returns the sealed secrets after a change, without the secrets of removed triggers. Returns
 * undefined if the request does not change the secrets.
 */
function secretsOf(
  secrets: Saving['secrets'],
  before: LoopState['secrets'],
): Record<string, string> | undefined {
  if (!secrets) return undefined
  return Object.fromEntries(
    Object.entries(secrets).flatMap(([key, secret]) => {
      const kept = secret === true ? getOwn(before, key) : secret
      return kept === undefined ? [] : [[key, kept]]
    }),
  )
}

/** Creates a loop with version 1. */
export function create(
  options: LoopOptions,
  state: LoopState,
  input: CreateLoop & Saving,
  cause: Cause,
): Decision<LoopEvent, Loop> {
  if (isExisting(state)) return { events: [], reply: state.record }
  // A deleted loop stays deleted. A new loop needs another id.
  if (state.deleted) return refuse('conflict')
  const status = newStatus(input)
  const faults = [...reservedTags(input.tags, options.brand), ...newStatusFaults(input)]
  if (faults.length > 0) return refuseFields(...faults)
  const refused = unreserved(input.triggers, state, input.reserved, cause.at)
  if (refused) return refused
  const { triggers, trigger_ids } = materialize(input.triggers, state, cause)
  const id = cause.self.id
  const authored = withoutBlanks({
    ...chosen(input, { ...metadata, ...authoring }),
    ...(triggers && { triggers }),
  })
  const loop: Loop = {
    id,
    name: input.name,
    status,
    ...(Object.fromEntries(
      Object.entries(authored).filter(([, value]) => !isEmpty(value)),
    ) as Authored),
    owner: cause.principal.id,
    created_at: timestamp(cause.at),
    updated_at: timestamp(cause.at),
  }
  const draft = newDraft(state, cause, options)
  emit(draft, {
    type: 'loop.created',
    id,
    loop,
    version: { id: cause.mint('loop_version'), number: 1 },
    definitions: input.definitions ?? {},
    trigger_ids,
    secrets: secretsOf(input.secrets, {}) ?? {},
  })
  for (const event of derivedEvents(state, draft.state, input.organization, cause))
    emit(draft, event)
  return withReply(draft, loop)
}

/**
 * Changes a loop. The status `deleted` deletes it. Activation of a loop without steps is refused.
 */
export function update(
  options: LoopOptions,
  state: LoopState,
  input: UpdateLoop & Saving,
  cause: Cause,
): Decision<LoopEvent, Loop> {
  if (!isExisting(state)) return refuse('not_found')
  if (input.status === 'deleted') {
    const removed = remove(options, state, input, cause)
    return 'refused' in removed
      ? removed
      : {
          ...removed,
          reply: { ...state.record, status: 'deleted', updated_at: timestamp(cause.at) },
        }
  }
  const authored = authoredIn(input)
  const touched = Object.keys(authored).length > 0
  const { record } = state
  const status = changedStatus(record, input)
  const faults = [
    ...reservedTags(input.tags, options.brand),
    ...changeFaults(record, input, secretKeys(input.secrets, state.secrets)),
  ]
  if (faults.length > 0) return refuseFields(...faults)
  const refused = unreserved(input.triggers, state, input.reserved, cause.at)
  if (refused) return refused

  const { triggers, trigger_ids } = input.triggers
    ? materialize(input.triggers, state, cause)
    : { trigger_ids: state.trigger_ids }
  const wish = withoutBlanks({
    ...chosen(input, metadata),
    ...authored,
    ...(triggers && { triggers }),
    ...(input.name !== undefined && { name: input.name }),
    status,
  })
  const change = changeOf<Loop>(record, wish as Partial<Loop>, cause.at)
  const secrets = secretsOf(input.secrets, state.secrets)
  if (!change && !touched && !secrets) return { events: [], reply: record }
  const derived: Derived | undefined = touched
    ? {
        version: { id: cause.mint('loop_version'), number: state.version.number + 1 },
        definitions: input.definitions ?? state.definitions,
        trigger_ids,
      }
    : undefined
  const draft = newDraft(state, cause, options)
  emit(draft, {
    type: 'loop.updated',
    id: cause.self.id,
    name: input.name ?? record.name,
    loop: change?.patch ?? { updated_at: timestamp(cause.at) },
    changes: {
      ...auditedChanges({
        ...change?.changes,
        ...(reseals(state.secrets, secrets) && { settings: {} }),
      }),
      ...(derived && { version: { from: state.version.number, to: derived.version.number } }),
    },
    ...(derived && { derived }),
    ...(secrets && { secrets }),
    editor: cause.principal.id,
  })
  return followUp(draft, state, input.organization, cause)
}
const reseals = (before: LoopState['secrets'], after = before): boolean =>
  JSON.stringify(before) !== JSON.stringify(after)
/**
 * Reduces changes to the definition and the settings to the names of the fields, because their
 * content is too long for the audit log.
 */
const auditedChanges = (
  changes: Readonly<Record<string, { readonly from?: unknown; readonly to?: unknown }>>,
) =>
  Object.fromEntries(
    Object.entries(changes).map(([name, change]) => [
      name,
      Object.hasOwn(authoring, name) || name === 'settings' ? {} : change,
    ]),
  )

function followUp(
  draft: Draft,
  before: ExistingLoop,
  organization: string,
  cause: Cause,
): Decision<LoopEvent, Loop> {
  for (const event of derivedEvents(before, draft.state, organization, cause)) emit(draft, event)
  updateHalts(draft)
  admitWaiting(draft)
  const { record } = draft.state
  return record ? withReply(draft, record) : refuse('not_found')
}

/** Deletes the loop. Active runs continue. Waiting runs are displaced. */
export function remove(
  options: LoopOptions,
  state: LoopState,
  { organization }: Pick<Saving, 'organization'>,
  cause: Cause,
): Decision<LoopEvent, undefined> {
  if (!isExisting(state)) return refuse('not_found')
  const draft = newDraft(state, cause, options)
  emit(draft, { type: 'loop.deleted', id: cause.self.id, name: state.record.name })
  for (const event of derivedEvents(state, draft.state, organization, cause)) emit(draft, event)
  dismiss(draft)
  return withReply(draft, undefined)
}

/** Deletes the loop, if it exists, because its project was deleted. */
export const end = (
  options: LoopOptions,
  state: LoopState,
  input: LoopCommands['loop.end']['input'],
  cause: Cause,
): Decision<LoopEvent, undefined> =>
  isExisting(state) ? remove(options, state, input, cause) : emptyDecision

/** Reports whether the loop uses a handle that was reserved for it. */
export function settleHandle(
  state: LoopState,
  { handle, organization }: LoopCommands['handle.settle']['input'],
  cause: Cause,
): Decision<LoopEvent, undefined> {
  const trigger_id = isExisting(state)
    ? handlesOf(state.record, state.trigger_ids).get(handle)
    : undefined
  return {
    ...emptyDecision,
    events: [
      {
        type: trigger_id === undefined ? 'handle.freed' : 'handle.bound',
        handle,
        loop_id: cause.self.id,
        trigger_id: trigger_id ?? '',
        organization,
      },
    ],
  }
}
