/**
 * Converts a provider's webhook into a source event of the type `<provider>.<resource>.<verb>`. The
 * resource is the provider's name for the event. The verb is the event's action, or a fixed verb
 * for events without an action or with one that cannot be part of a type. Requests are
 * authenticated beforehand, in `signature.ts`.
 */
import { createHash } from 'node:crypto'
import type { JsonObject } from '../../../protocol/common.ts'
import type { ProviderName } from '../../../protocol/events/integrations.ts'
import type { ServicePublication } from '../../../protocol/events/sources.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { cutText } from '../../../protocol/rules/cut-text.ts'

/** A verified request from a provider. `header` expects a name in lower case. */
export interface Received {
  readonly header: (name: string) => string | undefined
  readonly text: string
  readonly body: JsonObject
}
/**
 * The content of a request: a source event, or a test that is only acknowledged. `fault` names the
 * header or field that is missing or malformed.
 */
export type Read = ServicePublication | { readonly test: true } | { readonly fault: string }

const RECEIVED = 'received'
/**
 * Verbs of events without an action, by provider and event. Events that are not listed have the
 * verb `received`.
 */
const verbs: Readonly<Record<ProviderName, Readonly<Record<string, string>>>> = {
  github: {
    create: 'created',
    delete: 'deleted',
    fork: 'created',
    gollum: 'updated',
    public: 'published',
    push: 'pushed',
    status: 'updated',
  },
  gitlab: {
    build: 'updated',
    deployment: 'updated',
    note: 'create',
    pipeline: 'updated',
    push: 'pushed',
    tag_push: 'pushed',
  },
}
const SEGMENT = /^[A-Za-z0-9_-]{1,48}$/
/** Maximum length of a delivery id in characters. */
const MAX_DELIVERY_ID_LENGTH = 255
/**
 * Maximum length of the repository, sender and action in characters. Only the payload of an event
 * is reduced when it is too large, so the other fields need a limit of their own.
 */
const MAX_FACT_LENGTH = 1024

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? getOwn(value as JsonObject, name) : undefined
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? cutText(value, MAX_FACT_LENGTH) : undefined

interface Facts {
  readonly resource: string | undefined
  readonly action: string | undefined
  /** Identifies the delivery. A repeat of the delivery has the same id. */
  readonly delivery_id: string | undefined
  readonly repository: string | undefined
  readonly sender: string | undefined
}

const ofGitHub = ({ header, body }: Received): Facts => ({
  resource: header('x-github-event'),
  action: textOf(getOwn(body, 'action')),
  delivery_id: header('x-github-delivery'),
  repository: textOf(memberOf(getOwn(body, 'repository'), 'full_name')),
  sender: textOf(memberOf(getOwn(body, 'sender'), 'login')),
})

/**
 * GitLab sends the same `X-Gitlab-Event-UUID` with all webhooks that one event triggers, so this
 * header identifies a delivery only together with the body. It is used when a request has neither
 * `Idempotency-Key` nor `webhook-id`.
 */
function ofGitLab({ header, body, text }: Received): Facts {
  const uuid = header('x-gitlab-event-uuid')
  const named = header('x-gitlab-event')?.replace(/ Hook$/, '')
  return {
    resource:
      textOf(getOwn(body, 'object_kind')) ?? named?.toLowerCase().replaceAll(' ', '_') ?? undefined,
    action:
      textOf(memberOf(getOwn(body, 'object_attributes'), 'action')) ??
      textOf(getOwn(body, 'action')),
    delivery_id:
      header('idempotency-key') ??
      header('webhook-id') ??
      (uuid && `${uuid}:${createHash('sha256').update(text, 'utf8').digest('hex')}`),
    repository: textOf(memberOf(getOwn(body, 'project'), 'path_with_namespace')),
    sender:
      textOf(memberOf(getOwn(body, 'user'), 'username')) ?? textOf(getOwn(body, 'user_username')),
  }
}

/** Extracts the source event from a provider's verified request. */
export function readEvent(provider: ProviderName, received: Received): Read {
  const { resource, action, delivery_id, repository, sender } =
    provider === 'github' ? ofGitHub(received) : ofGitLab(received)
  if (resource === undefined)
    return { fault: provider === 'github' ? 'X-GitHub-Event' : 'object_kind' }
  if (provider === 'github' && resource === 'ping') return { test: true }
  if (delivery_id === undefined || delivery_id.length > MAX_DELIVERY_ID_LENGTH)
    return { fault: provider === 'github' ? 'X-GitHub-Delivery' : 'Idempotency-Key' }
  if (!SEGMENT.test(resource)) return { fault: 'the name of the event' }
  // The action of a `repository_dispatch` of GitHub is any text.
  const verb =
    action === undefined || SEGMENT.test(action)
      ? (action ?? getOwn(verbs[provider], resource) ?? RECEIVED)
      : RECEIVED
  return {
    event_type: `${provider}.${resource}.${verb}`,
    source_kind: provider,
    source_id: repository ?? provider,
    event: received.body,
    meta: {
      delivery_id,
      ...(repository !== undefined && { repository }),
      ...(sender !== undefined && { sender }),
      ...(action !== undefined && { action }),
    },
    depth: 0,
    dedup_key: `${provider}:${delivery_id}`,
  }
}
