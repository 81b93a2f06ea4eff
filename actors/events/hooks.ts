/**
 * Webhooks in the matcher of a project: which of them receive an event, and the content of its
 * deliveries. The deliveries themselves are in actors/webhooks/.
 */
import type { JsonObject } from '../../protocol/common.ts'
import { restrictionOf, type SourceEvent } from '../../protocol/events/sources.ts'
import { isInternal } from '../../protocol/events/types.ts'
import type { DeliveryOpening } from '../../protocol/webhooks/delivery.ts'
import { reducePayload } from './reduce-payload.ts'
import type { SourcesState } from './state.ts'

/**
 * Whether an event type matches a webhook's type or pattern. Unlike triggers, webhooks also receive
 * signals.
 */
const wants = (pattern: string, event_type: string): boolean =>
  pattern === '*' ||
  (pattern.endsWith('.*') ? event_type.startsWith(pattern.slice(0, -1)) : pattern === event_type)

/**
 * Returns the ids of the webhooks that receive an event. No webhook receives an event that is
 * internal to the service. A project has few webhooks, so all of them are checked.
 */
export function hooksFor({ hooks }: SourcesState, event_type: string): string[] {
  const ids: string[] = []
  for (const id in hooks) {
    const events = hooks[id] ?? []
    if (events.length === 0 || events.some((pattern) => wants(pattern, event_type))) ids.push(id)
  }
  return ids.length > 0 && isInternal(event_type) ? [] : ids
}

/**
 * For the first part of an event type, the name of the payload field that contains the id of the
 * record that the event is about. If an event does not include this record, `data` gets at least
 * its id.
 */
const subjects: Readonly<Record<string, string>> = {
  run: 'run_id',
  loop: 'run_id',
  check: 'run_id',
  interaction: 'interaction_id',
  artifact: 'artifact_id',
  session: 'message_id',
  table: 'row_id',
}
/**
 * Returns the record as of the event, merged with the payload. Without a record, returns the
 * payload, whose `id` defaults to the id of the record that the payload refers to.
 */
function dataOf({
  event_type,
  event,
  record,
}: Pick<SourceEvent, 'event_type' | 'event' | 'record'>): JsonObject {
  if (record) return reducePayload({ ...record, ...event })
  const field = subjects[event_type.slice(0, Math.max(0, event_type.indexOf('.')))]
  const id = field === undefined ? undefined : event[field]
  return reducePayload(
    typeof id === 'string' && !Object.hasOwn(event, 'id') ? { id, ...event } : event,
  )
}

/**
 * Returns the input of the command that opens the delivery of an event to a webhook.
 * @param id id of the delivery.
 */
export function openingOf(
  project_id: string,
  webhook_id: string,
  id: string,
  source: SourceEvent,
): DeliveryOpening {
  const { id: event_id, event_type, meta, occurred_at } = source
  const { run_id } = meta
  return {
    to: { kind: 'webhook', webhook_id },
    event_type,
    ...(typeof run_id === 'string' && { run_id }),
    ...restrictionOf(source),
    body: {
      type: event_type,
      data: dataOf(source),
      delivery_id: id,
      event_id,
      project_id,
      occurred_at,
      meta,
    },
  }
}
