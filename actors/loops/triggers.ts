/**
 * Changes to the triggers of a loop that result from a change to the loop: their ids and handles,
 * the watched events, and the fire times of schedules.
 */

import type { Watch } from '../../protocol/events/sources.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { LoopEvent } from '../../protocol/loops/events.ts'
import { httpHandle, type Loop, type Trigger, triggerKey } from '../../protocol/loops/schema.ts'
import { nextFire } from '../../protocol/rules/schedule.ts'
import type { Cause } from '../actor.ts'
import { standingEvents } from './standing.ts'
import { isExisting, type LoopState, triggersOf } from './state.ts'

/**
 * Returns the triggers of a version, with their ids. A trigger whose key existed before keeps its
 * id. An HTTP trigger also keeps its handle unless another handle is given. A new HTTP trigger
 * without a handle uses its id as its handle.
 */
export function materialize(
  triggers: readonly Trigger[] | undefined,
  before: LoopState,
  cause: Cause,
): { readonly triggers?: Trigger[]; readonly trigger_ids: Readonly<Record<string, string>> } {
  // `ids` is a map because a key may be any string, including the name of an inherited property.
  const ids = new Map<string, string>()
  const made = (triggers ?? []).map((trigger, index): Trigger => {
    const key = triggerKey(trigger, index)
    const id = getOwn(before.trigger_ids, key) ?? cause.mint('trigger')
    ids.set(key, id)
    if (trigger.kind !== 'http') return trigger
    const known = before.record?.triggers?.find((old, at) => triggerKey(old, at) === key)
    const kept = known && httpHandle(known)
    return { ...trigger, config: { http_handle: trigger.config?.http_handle ?? kept ?? id } }
  })
  return { ...(triggers && { triggers: made }), trigger_ids: Object.fromEntries(ids) }
}

/** Returns the ids of a loop's HTTP triggers, by handle. */
export const handlesOf = (
  loop: Pick<Loop, 'triggers'> | undefined,
  ids: LoopState['trigger_ids'],
): ReadonlyMap<string, string> =>
  new Map(
    loop
      ? triggersOf(loop, ids).flatMap(({ id, trigger }) => {
          const handle = httpHandle(trigger)
          return handle === undefined ? [] : [[handle, id] as const]
        })
      : [],
  )

const watchOf = ({ id, trigger }: ReturnType<typeof triggersOf>[number]): Watch[] => {
  if (trigger.enabled === false) return []
  if (trigger.kind === 'http')
    return [{ trigger_id: id, event_type: 'http_trigger.received', source_id: id }]
  return trigger.kind === 'event' ? [{ trigger_id: id, ...trigger.config }] : []
}
const watches = (state: LoopState): Watch[] =>
  isExisting(state) && state.record.status === 'active'
    ? triggersOf(state.record, state.trigger_ids).flatMap(watchOf)
    : []

/**
 * Returns the events that follow from a change to the loop. They free and bind handles, and update
 * the watched events, the summary for the loop's project, and the times of schedules.
 */
export function derivedEvents(
  before: LoopState,
  after: LoopState,
  organization: string,
  cause: Cause,
): LoopEvent[] {
  const loop_id = cause.self.id
  const [old, now] = [
    handlesOf(before.record, before.trigger_ids),
    handlesOf(isExisting(after) ? after.record : undefined, after.trigger_ids),
  ]
  const events: LoopEvent[] = []
  for (const [handle, trigger_id] of old)
    if (now.get(handle) !== trigger_id)
      events.push({ type: 'handle.freed', handle, loop_id, trigger_id, organization })
  for (const [handle, trigger_id] of now)
    if (old.get(handle) !== trigger_id)
      events.push({ type: 'handle.bound', handle, loop_id, trigger_id, organization })
  const triggers = watches(after)
  if (JSON.stringify(triggers) !== JSON.stringify(watches(before)))
    events.push({ type: 'triggers.watched', loop_id, version: before.watched + 1, triggers })
  events.push(...standingEvents(before, after, loop_id, organization))
  const clocks = schedules(before, after, cause.at)
  if (Object.keys(clocks).length > 0) events.push({ type: 'schedules.set', clocks })
  return events
}

function schedules(
  before: LoopState,
  after: LoopState,
  at: number,
): Extract<LoopEvent, { type: 'schedules.set' }>['clocks'] {
  const live =
    isExisting(after) && after.record.status === 'active'
      ? triggersOf(after.record, after.trigger_ids).filter(
          ({ trigger }) => trigger.kind === 'schedule' && trigger.enabled !== false,
        )
      : []
  const clocks: Record<string, { next: number; anchor: number } | null> = {}
  for (const id of Object.keys(before.clocks))
    if (!live.some((known) => known.id === id)) clocks[id] = null
  for (const { id, trigger } of live) {
    if (trigger.kind !== 'schedule') continue
    const known =
      before.record &&
      triggersOf(before.record, before.trigger_ids).find((old) => old.id === id)?.trigger
    const unchanged =
      known?.kind === 'schedule' && JSON.stringify(known.config) === JSON.stringify(trigger.config)
    if (unchanged && before.clocks[id]) continue
    const next = nextFire(trigger.config, at, at)
    if (next !== undefined) clocks[id] = { next, anchor: at }
  }
  return clocks
}
