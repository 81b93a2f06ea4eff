/**
 * The rows, schemas and events of webhooks, which receive events of a project, and the records of
 * deliveries. The commands and events of a delivery are in `delivery.ts`.
 */
import { type Static, Type } from 'typebox'
import type { SealedSecret } from '../actions/rows.ts'
import { additions, onlyIncluding } from '../additions.ts'
import { Closed, pageOf, paging, Tags, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'
import { checkHookTypes } from '../events/types.ts'
import { type ChangedUrlParts, MASKED, maskUrl, queryFault, type UrlParts } from '../masked-url.ts'
import type { Patch } from '../patch.ts'
import { fragmentFault, urlFault } from '../rules/url-fault.ts'
import type { Changes } from '../workflows/rows.ts'
import { SavedWarnings, webhookAdditions } from '../workflows/saved-warnings.ts'

const Url = Type.String({
  maxLength: 2048,
  description: `https:// URL of the receiver; if empty, nothing is sent. ${MASKED}`,
})
const Events = Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
  maxItems: 64,
  description: 'Event types such as run.failed, families such as run.*, or *; empty: every event',
})
const Name = Type.String({ minLength: 1, maxLength: 160 })
const SigningSecret = Type.String({
  description: 'Signing secret, 32 bytes in base64; returned only in this response',
})

export const Webhook = Type.Object({
  id: Type.String(),
  name: Type.String(),
  url: Type.String(),
  events: Type.Array(Type.String()),
  enabled: Type.Boolean(),
  tags: Type.Optional(Tags),
  secret_ref: Type.Optional(Type.String()),
  secret_version: Type.Optional(Type.Integer({ minimum: 1 })),
  signing_secret: Type.Optional(SigningSecret),
  created_by: Type.Optional(Type.String()),
  updated_by: Type.Optional(Type.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
  warnings: Type.Optional(SavedWarnings),
})
export type Webhook = Static<typeof Webhook>
/** Maximum number of characters of a response that the record of an attempt shows. */
export const MAX_RESPONSE_CHARACTERS = 500
const Attempt = Type.Object({
  attempt: Type.Integer({
    minimum: 0,
    description: 'Number of the attempt; 0 if the delivery failed before a request was sent',
  }),
  ended_at: Timestamp,
  delivered: Type.Boolean(),
  response_code: Type.Optional(Type.Integer()),
  error: Type.Optional(Type.String()),
  latency_ms: Type.Optional(Type.Integer()),
  answer: Type.Optional(
    Type.String({
      description: `First ${MAX_RESPONSE_CHARACTERS} characters of the response of the receiver`,
    }),
  ),
})
export type Attempt = Static<typeof Attempt>
/** The additions of a delivery record. */
const deliveryAdditions = additions({ attempt_log: {}, resend_of: {} })
export const DeliveryRecord = Type.Object({
  id: Type.String(),
  webhook_id: Type.String(),
  run_id: Type.Optional(Type.String()),
  event_type: Type.String(),
  status: Type.Enum(['pending', 'processing', 'delivered', 'failed']),
  attempts: Type.Integer({ description: 'Number of started attempts; at most 10' }),
  last_error: Type.Optional(Type.String({ description: 'Error of the latest failed attempt' })),
  created_at: Timestamp,
  delivered_at: Type.Optional(Timestamp),
  response_code: Type.Optional(Type.Integer({ description: 'HTTP status of the latest response' })),
  next_attempt_at: Type.Optional(Timestamp),
  attempt_log: Type.Optional(
    Type.Array(Attempt, {
      description: 'Ended attempts, oldest first; attempts of earlier releases are not included',
    }),
  ),
  resend_of: Type.Optional(
    Type.String({ description: 'Id of the delivery whose content this delivery sends again' }),
  ),
})
export type DeliveryRecord = Static<typeof DeliveryRecord>

export const CreateWebhook = Closed({
  name: Name,
  url: Type.Optional(Url),
  events: Type.Optional(Events),
  enabled: Type.Optional(Type.Boolean()),
  tags: Type.Optional(Tags),
})
const UpdateWebhook = Closed({
  name: Type.Optional(Name),
  url: Type.Optional(Url),
  events: Type.Optional(Events),
  enabled: Type.Optional(Type.Boolean()),
  tags: Type.Optional(Tags),
})
const Ping = Closed({
  url: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 2048,
      description: 'URL to test instead of the stored URL',
    }),
  ),
})
const PingResult = Type.Object({
  success: Type.Boolean(),
  status_code: Type.Optional(Type.Integer()),
  error: Type.Optional(Type.String()),
  latency_ms: Type.Optional(Type.Integer()),
})
const SecretRotated = Type.Object({
  secret_ref: Type.String(),
  secret_version: Type.Integer({ minimum: 1 }),
  signing_secret: SigningSecret,
})

/**
 * Returns the faults of a webhook that the schema cannot detect. The gateway also checks whether
 * the URL may be called.
 */
function check({ events = [], url = '' }: Static<typeof UpdateWebhook>): FieldError[] {
  const faults = checkHookTypes(events, 'events')
  if (url === '') return faults
  const message =
    urlFault(url, ['https:', 'http:'], 'must be an absolute address that begins with https://') ??
    fragmentFault(url) ??
    queryFault(url)
  return message === undefined
    ? faults
    : [...faults, { field: 'url', message, actual: maskUrl(url) }]
}

const P = '/projects/:project/webhooks'
const one = `${P}/:webhook_id`
const tag = 'webhooks'
const admin = { tag, permission: 'project.admin', to: { kind: 'project' } } as const

export const webhooks = {
  'webhook.list': query(`GET ${P}`, {
    summary: 'Webhooks, newest first',
    tag,
    permission: 'project.view',
    query: Closed({
      enabled: Type.Optional(Type.Boolean()),
      ...paging,
      include: webhookAdditions.include,
    }),
    additions: webhookAdditions.additions,
    reply: pageOf(Webhook),
  }),
  'webhook.create': command(`POST ${P}`, {
    ...admin,
    summary: 'Create a webhook, which receives signed events of the project',
    ...onlyIncluding(webhookAdditions),
    body: CreateWebhook,
    check,
    reply: Webhook,
    status: 201,
    errors: ['already_exists', 'conflict'],
  }),
  'webhook.get': query(`GET ${one}`, {
    summary: 'One webhook',
    tag,
    permission: 'project.view',
    ...onlyIncluding(webhookAdditions),
    reply: Webhook,
    errors: ['not_found'],
  }),
  'webhook.update': command(`PATCH ${one}`, {
    ...admin,
    summary: 'Change a webhook',
    ...onlyIncluding(webhookAdditions),
    body: UpdateWebhook,
    check,
    reply: Webhook,
    errors: ['not_found', 'already_exists'],
  }),
  'webhook.delete': command(`DELETE ${one}`, {
    ...admin,
    summary: 'Delete a webhook; its pending deliveries are dropped',
    status: 204,
    errors: ['not_found'],
  }),
  'webhook.rotate_secret': command(`POST ${one}/secret/rotate`, {
    ...admin,
    summary: 'Replace the secret that signs deliveries; it applies from the next attempt',
    body: Closed({}),
    bodyOptional: true,
    reply: SecretRotated,
    errors: ['not_found'],
  }),
  'webhook.ping': command(`POST ${one}/ping`, {
    ...admin,
    summary: 'Send a test delivery and wait for the response of the receiver',
    body: Ping,
    check,
    bodyOptional: true,
    reply: PingResult,
    errors: ['not_found'],
  }),
  'webhook.deliveries': query(`GET ${one}/deliveries`, {
    summary: 'Deliveries of a webhook within the last 30 days, newest first',
    viewer: true,
    tag,
    permission: 'project.view',
    query: Closed({ ...paging, include: deliveryAdditions.include }),
    additions: deliveryAdditions.additions,
    reply: pageOf(DeliveryRecord),
    errors: ['not_found'],
  }),
  'webhook.resend': command(`POST ${one}/deliveries/:delivery_id/resend`, {
    summary: 'Send the content of a delivery again, as a new delivery',
    tag,
    permission: 'project.admin',
    to: { kind: 'delivery', mint: 'delivery' },
    body: Closed({}),
    bodyOptional: true,
    ...onlyIncluding(deliveryAdditions),
    reply: DeliveryRecord,
    status: 202,
    errors: ['not_found', 'conflict'],
  }),
} as const

/** A webhook as stored, with the secret that signs its deliveries. */
export interface WebhookWithSecret extends UrlParts {
  readonly webhook: Webhook
  readonly secret: SealedSecret & { readonly version: number }
}
/** Events of a project about its webhooks. */
export type WebhookEvent =
  | (Event &
      UrlParts & {
        readonly type: 'webhook.created'
        readonly id: string
        readonly webhook: Webhook
        readonly secret: SealedSecret
      })
  | (Event &
      ChangedUrlParts & {
        readonly type: 'webhook.updated'
        readonly id: string
        readonly webhook: Patch<Webhook>
        readonly changes: Changes
      })
  | (Event & { readonly type: 'webhook.deleted'; readonly id: string; readonly name: string })
  | (Event & {
      readonly type: 'webhook.secret_rotated'
      readonly id: string
      readonly name: string
      readonly version: number
      readonly secret: SealedSecret
    })
