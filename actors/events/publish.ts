/**
 * Publication of source events. Each event is compared with all listeners in the decision that
 * stores it, so no registered listener misses it.
 */
import type { Api } from '../../protocol/api.ts'
import { bodyKey, timestamp } from '../../protocol/common.ts'
import type { Input, Reply } from '../../protocol/contract.ts'
import type { CustomEvent, Named } from '../../protocol/events/rows.ts'
import {
  type Publication,
  type Published,
  restrictionOf,
  type SourceCommands,
  type SourcesEvent,
  type TriggerLimits,
  type UnsureReply,
} from '../../protocol/events/sources.ts'
import type { Budget } from '../../protocol/rules/expressions/values.ts'
import { extended } from '../../protocol/rules/extended.ts'
import type { Cause, Decided } from '../actor.ts'
import { withinLimits } from './budget.ts'
import { hooksFor } from './hooks.ts'
import { listenersOf, newConditionBudget } from './listeners.ts'
import { reducePayload } from './reduce-payload.ts'
import { recall, type SourcesState } from './state.ts'

type Stored = Extract<SourcesEvent, { type: 'source.published' }>
/**
 * Whether an event of this type is about a run or a check. Runs publish many such events, so they
 * are stored only if they have listeners or webhooks.
 */
const isChatter = (event_type: string): boolean =>
  event_type.startsWith('run.') || event_type.startsWith('check.')

/** The wakes, faults and overruns that are stored for a restricted event: none. */
const UNHEARD = { wakes: {}, faulty: {}, overruns: {} } as const

/**
 * Returns the event that stores a publication, or undefined if it need not be stored.
 * @param wantedId id of the event. If undefined, an id is generated.
 * @param budget the budget for the conditions of the command.
 */
function store(
  state: SourcesState,
  publication: Publication,
  wantedId: string | undefined,
  cause: Pick<Cause, 'at' | 'mint'>,
  limits: TriggerLimits,
  budget: Budget,
): Stored | undefined {
  const { event_type, source_kind, source_id, meta, depth, chain, dedup_key } = publication
  const chatter = isChatter(event_type)
  const event = chatter ? publication.event : reducePayload(publication.event)
  const matched = listenersOf(state).match(
    event === publication.event ? publication : { ...publication, event },
    budget,
  )
  const webhook_ids = hooksFor(state, event_type)
  const hooked = webhook_ids.length > 0
  // An event of a run or a check is not stored if it has neither listeners nor webhooks. This is
  // true of most such events, so nothing else is computed for them.
  if (chatter && !matched.heard && !hooked) return undefined
  const id = wantedId ?? cause.mint('source_event')
  const restriction = restrictionOf(publication)
  const limited = withinLimits(
    state,
    { id, event_type, depth, ...(chain && { chain }), fires: matched.fires },
    cause.at,
    limits,
  )
  const { fires } = limited
  // A restricted event must not be disclosed to every reader of a run or loop. It therefore resumes
  // no wait, and neither faults of conditions nor reasons for a pause are stored.
  const { wakes, faulty, overruns } = restriction ? UNHEARD : extended(matched, limited)
  const hooks: Record<string, string> = {}
  for (const webhook_id of webhook_ids) hooks[webhook_id] = cause.mint('delivery')
  const record = hooked ? publication.record : undefined
  return {
    type: 'source.published',
    id,
    event_type,
    source_kind,
    source_id,
    event,
    meta,
    ...(record && { record }),
    depth,
    ...(chain && { chain }),
    ...restriction,
    occurred_at: timestamp(cause.at),
    ...(dedup_key !== undefined && { dedup_key }),
    ...(Object.keys(fires).length > 0 && { fires }),
    ...(Object.keys(overruns).length > 0 && { overruns }),
    ...(Object.keys(wakes).length > 0 && { wakes }),
    ...(Object.keys(faulty).length > 0 && { faulty }),
    ...(hooked && { hooks }),
  }
}

const unsureOf = ({ keys }: SourcesState, asked: readonly string[]): UnsureReply => ({
  generation: keys.generation,
  keys: asked,
})

/**
 * Publishes an event of the service, or returns the id of an earlier event with the same
 * deduplication key. If it is unknown whether the key was used, nothing is stored and the reply
 * contains `unsure`.
 */
export function publish(
  state: SourcesState,
  publication: SourceCommands['source.publish']['input'],
  cause: Cause,
  limits: TriggerLimits,
): Decided<SourcesEvent, Published> {
  const known =
    publication.dedup_key === undefined
      ? null
      : recall(state, publication.dedup_key, cause.at, publication.recalled)
  if (known === undefined)
    return {
      events: [],
      reply: { source_event_id: '', unsure: unsureOf(state, [publication.dedup_key ?? '']) },
    }
  if (known !== null) return { events: [], reply: { source_event_id: known, deduped: true } }
  const stored = store(state, publication, publication.id, cause, limits, newConditionBudget())
  return stored
    ? { events: [stored], reply: { source_event_id: stored.id } }
    : { events: [], reply: { source_event_id: '' } }
}

/** Publishes several events of the service in order. */
export const publishRoots = (
  state: SourcesState,
  { publications }: SourceCommands['source.publish_all']['input'],
  cause: Cause,
  limits: TriggerLimits,
): Decided<SourcesEvent, undefined> => {
  const budget = newConditionBudget()
  return {
    events: publications.flatMap((one) => store(state, one, one.id, cause, limits, budget) ?? []),
    reply: undefined,
  }
}

function publicationOf(custom: CustomEvent, { principal }: Cause): Publication {
  const { event_type, event = {}, meta = {}, source_id = principal.id } = custom
  const key = bodyKey(custom)
  return {
    event_type,
    source_kind: 'custom',
    source_id,
    event,
    meta,
    depth: 0,
    ...(key !== undefined && { dedup_key: `custom:${key}` }),
  }
}
/**
 * Decides in order which events of a client are stored. Of several events with the same key, only
 * the first is stored. If it is unknown whether a key was used, nothing is stored.
 */
function publishAll(
  state: SourcesState,
  customEvents: readonly CustomEvent[],
  { ids, recalled }: Named,
  cause: Cause,
  limits: TriggerLimits,
): { events: SourcesEvent[]; items: Published[]; unsure?: UnsureReply } {
  const events: SourcesEvent[] = []
  const fresh = new Map<string, string>()
  const unknown = new Set<string>()
  const budget = newConditionBudget()
  const items = customEvents.map((custom, index): Published => {
    const publication = publicationOf(custom, cause)
    const { dedup_key } = publication
    const known =
      dedup_key === undefined
        ? null
        : (fresh.get(dedup_key) ?? recall(state, dedup_key, cause.at, recalled))
    if (known === undefined) unknown.add(dedup_key ?? '')
    if (known) return { source_event_id: known, deduped: true }
    const id = ids[index] ?? cause.mint('source_event')
    const stored = store(state, publication, id, cause, limits, budget)
    if (stored) events.push(stored)
    if (dedup_key !== undefined) fresh.set(dedup_key, id)
    return { source_event_id: id }
  })
  return unknown.size > 0
    ? { events: [], items: [], unsure: unsureOf(state, [...unknown]) }
    : { events, items }
}

/** Publishes one event of a client. */
export function publishOne(
  state: SourcesState,
  { ids, recalled, ...custom }: Input<Api['event.publish']> & Named,
  cause: Cause,
  limits: TriggerLimits,
): Decided<SourcesEvent, Reply<Api['event.publish']>> {
  const { events, items, unsure } = publishAll(
    state,
    [custom],
    { ids, ...(recalled && { recalled }) },
    cause,
    limits,
  )
  return {
    events,
    reply: { source_event_id: '', ...items[0], status: 'accepted', ...(unsure && { unsure }) },
  }
}
/**
 * Publishes several events of a client. The reply is empty when all of them are new, because the
 * gateway has generated their ids and replies are stored for repeats.
 */
export function publishMany(
  state: SourcesState,
  { events: customEvents, ...named }: Input<Api['event.publish_many']> & Named,
  cause: Cause,
  limits: TriggerLimits,
): Decided<SourcesEvent, Reply<Api['event.publish_many']>> {
  const { events, items, unsure } = publishAll(state, customEvents, named, cause, limits)
  return {
    events,
    reply: { items: items.some(({ deduped }) => deduped) ? items : [], ...(unsure && { unsure }) },
  }
}
