/**
 * The rows for source events: events in a project that can start runs and resume waiting ones. The
 * published contract leaves these points open, and this service decides them as follows:
 * - A client can publish custom events, one or many in one request.
 * - Every reader of the project can read published events, except events of private sessions, which
 *   only readers of the session can read.
 * - Events of runs (`run.*`, `check.*`) are stored only while a trigger, a wait or a webhook
 *   listens to them.
 */

import { type Static, Type } from 'typebox'
import { UnreadyReason } from '../actions/rows.ts'
import { Closed, cutting, JsonObject, pageOf, paging, sizeOf, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import type { FieldError } from '../errors.ts'
import type { Recalled } from './sources.ts'
import { checkCustomType } from './types.ts'

/**
 * The ids that the gateway assigns to the events of a command, in the order of the events. A repeat
 * of the request gets the same ids.
 */
export interface Named {
  readonly ids: readonly string[]
  /**
   * The answer of the view to the query about the idempotency keys. Present when the command is
   * repeated because the actor returned `unsure`.
   */
  readonly recalled?: Recalled
}

export const SourceEventRecord = Type.Object({
  id: Type.String(),
  event_type: Type.String(),
  source_kind: Type.String(),
  source_id: Type.String(),
  event: Type.Object(
    {},
    {
      additionalProperties: true,
      description: 'Payload of the event; contains `truncated: true` if large members were removed',
    },
  ),
  meta: JsonObject,
  occurred_at: Timestamp,
  causation: Type.Optional(
    Type.Object({
      depth: Type.Integer({
        description: 'Number of runs between this event and the first event of its causal chain',
      }),
    }),
  ),
  fired_triggers: Type.Integer({
    description: 'Number of triggers that the event matched when it was published',
  }),
  resumed_waits: Type.Integer({
    description: 'Number of waiting runs that the event matched when it was published',
  }),
})
export type SourceEventRecord = Static<typeof SourceEventRecord>

const CustomEvent = Closed({
  event_type: Type.String({ minLength: 1, maxLength: 256 }),
  event: Type.Optional(JsonObject),
  meta: Type.Optional(JsonObject),
  source_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description: 'Source of the event; the caller by default',
    }),
  ),
  idempotency_key: Type.Optional(
    Type.String({
      maxLength: 255,
      description:
        'Key that marks repeats: within 24 hours, an event with the same key, from any caller, ' +
        'is not published again, and the first id is returned',
    }),
  ),
})
export type CustomEvent = Static<typeof CustomEvent>
const CustomEvents = Closed({
  events: Type.Array(CustomEvent, {
    minItems: 1,
    maxItems: 100,
    description: 'Events, published in this order, all or none',
  }),
})
export const Accepted = Type.Object({
  source_event_id: Type.String(),
  deduped: Type.Optional(Type.Boolean()),
})
/**
 * The reply to a publication of one event, to a webhook of an integration, and to a request that
 * fires an HTTP trigger.
 */
export const EventAccepted = Type.Object({
  ...Accepted.properties,
  status: Type.Literal('accepted'),
})
export type EventAccepted = Static<typeof EventAccepted>

/** Maximum size of the routing fields of a published event as JSON, in bytes. */
const MAX_META_BYTES = 16_384
const isRouting = (value: unknown): boolean =>
  typeof value === 'string' ||
  typeof value === 'number' ||
  typeof value === 'boolean' ||
  (Array.isArray(value) && value.every((one) => typeof one === 'string'))
function sizeFaults(meta: JsonObject, field: string): FieldError[] {
  const actual = sizeOf(JSON.stringify(meta), MAX_META_BYTES)
  const message = `must have at most ${MAX_META_BYTES} bytes as JSON`
  return actual > MAX_META_BYTES
    ? [{ field, message, expected: { maxBytes: MAX_META_BYTES }, actual }]
    : []
}
function checkCustom({ event_type, meta = {} }: CustomEvent, path = ''): FieldError[] {
  const odd = Object.keys(meta).filter((name) => !isRouting(meta[name]))
  return [
    ...checkCustomType(event_type, `${path}event_type`),
    ...sizeFaults(meta, `${path}meta`),
    ...odd.map((name) => ({
      field: `${path}meta.${name}`,
      message: 'must be a text, a number, true or false, or a list of texts',
    })),
  ]
}
const checkMany = ({ events }: Static<typeof CustomEvents>): FieldError[] =>
  events.flatMap((event, index) => checkCustom(event, `events[${index}].`))

const Schema = Type.Optional(Type.Record(Type.String(), Type.Unknown()))
const EventSource = Type.Object({
  prefix: Type.String(),
  kind: Type.Enum(['capability', 'integration']),
  display_name: Type.String(),
  description: Type.Optional(Type.String()),
  readiness: Type.Enum(['ready', 'needs_setup']),
  readiness_reason: Type.Optional(UnreadyReason),
  event_types: Type.Array(
    Type.Object({
      name: Type.String(),
      description: Type.Optional(Type.String()),
      event_schema: Schema,
      meta_schema: Schema,
    }),
  ),
})
export const EventCatalog = Type.Object({
  items: Type.Array(EventSource),
  reserved_prefixes: Type.Array(
    Type.Object({ prefix: Type.String(), kind: Type.Enum(['capability', 'utility']) }),
  ),
})
export type EventCatalog = Static<typeof EventCatalog>

const P = '/projects/:project/events'
const tag = 'events'
const publish = { tag, permission: 'runs.operate', to: { kind: 'events' }, status: 202 } as const

export const events = {
  'event.publish': command(`POST ${P}`, {
    ...publish,
    summary: 'Publish a custom event, which can fire triggers and resume waiting runs',
    body: CustomEvent,
    check: checkCustom,
    reply: EventAccepted,
  }),
  'event.publish_many': command(`POST ${P}/batch`, {
    ...publish,
    summary: 'Publish up to 100 events in order, as one change',
    body: CustomEvents,
    check: checkMany,
    reply: Type.Object({ items: Type.Array(Accepted) }),
    limit: 4_194_304,
  }),
  'event.list': query(`GET ${P}`, {
    tag,
    permission: 'project.view',
    summary: 'Published events, newest first',
    viewer: true,
    query: Closed({
      event_type: Type.Optional(Type.String()),
      source_kind: Type.Optional(Type.String()),
      source_id: Type.Optional(Type.String()),
      ...paging,
    }),
    reply: pageOf(SourceEventRecord),
  }),
  'event.get': query(`GET ${P}/:id`, {
    tag,
    permission: 'project.view',
    summary: 'One published event',
    viewer: true,
    reply: SourceEventRecord,
    errors: ['not_found'],
  }),
  'catalog.events': query('GET /projects/:project/catalog/events', {
    tag: 'catalog',
    permission: 'project.view',
    summary: 'Event types that triggers and waits can use',
    answeredBy: 'gateway',
    query: Closed(cutting),
    reply: EventCatalog,
  }),
} as const
