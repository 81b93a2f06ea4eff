/**
 * Webhooks of a project. Deliveries are separate actors (actors/webhooks/delivery.ts).
 *
 * Invariants: names are unique. A webhook has exactly one secret, which is stored sealed. A
 * delivery attempt is signed with the newest version of the secret. The `events` actor, which
 * publishes events, is in the same shard and receives the subscriptions of a webhook in the same
 * commit.
 */

import type { SealedSecret } from '../../protocol/actions/rows.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input, Reply } from '../../protocol/contract.ts'
import { isRefusal, refuse, refuseFields } from '../../protocol/errors.ts'
import type { SourceCommands } from '../../protocol/events/sources.ts'
import { getOwn } from '../../protocol/lookup.ts'
import {
  maskUrl,
  resolveMasks,
  type SentUrl,
  sealedUrlOf,
  withMaskedUrl,
} from '../../protocol/masked-url.ts'
import { reservedTags, secretRef } from '../../protocol/naming.ts'
import { type Patch, patch } from '../../protocol/patch.ts'
import { refuseBeyondLimit } from '../../protocol/projects/limits.ts'
import type { DeliveryOpening } from '../../protocol/webhooks/delivery.ts'
import type {
  Webhook,
  WebhookEvent,
  WebhookWithSecret,
  webhooks,
} from '../../protocol/webhooks/rows.ts'
import type { Cause, Decision, Tell } from '../actor.ts'
import { changeWithUrl, newUrl, partsAfter, partsOf } from '../sealed-url.ts'
import type { ProjectOptions, ProjectState } from './state.ts'

type Rows = typeof webhooks
type Decided<R> = Decision<WebhookEvent, R>

const named = ({ webhooks: all }: ProjectState, name: string, but?: string): boolean =>
  Object.values(all).some(({ webhook }) => webhook.name === name && webhook.id !== but)
const listens = ({ enabled, url }: Webhook): boolean => enabled && url !== ''
/**
 * Returns the command that registers the subscriptions of a webhook with the project's `events`
 * actor. If the webhook is deleted, disabled or without a URL, the command removes them.
 * @param webhook undefined if it was deleted.
 */
const announceToMatcher = (
  { id }: Cause['self'],
  webhook_id: string,
  webhook: Webhook | undefined,
): Tell => ({
  to: { kind: 'events', id },
  name: 'hook.set',
  input: {
    webhook_id,
    ...(webhook && listens(webhook) && { events: webhook.events }),
  } satisfies SourceCommands['hook.set']['input'],
})

/**
 * Creates a webhook. The project never receives the raw secret. The gateway adds it to the reply.
 */
export function createWebhook(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['webhook.create']> & SealedSecret & SentUrl,
  cause: Cause,
): Decided<Webhook> {
  const { name, url = '', events = [], enabled = true, tags, sealed } = input
  const faults = reservedTags(tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  if (named(state, name)) return refuse('already_exists', { field: 'name', name })
  const full = refuseBeyondLimit('webhook', Object.keys(state.webhooks).length)
  if (full) return full
  const kept = newUrl('url', url, input.url_parts)
  if (isRefusal(kept)) return kept
  const id = cause.mint('webhook')
  const now = timestamp(cause.at)
  const webhook: Webhook = {
    id,
    name,
    url,
    events,
    enabled,
    ...(tags && Object.keys(tags).length > 0 && { tags }),
    secret_ref: secretRef(brand, 'webhook', id),
    created_by: cause.principal.id,
    updated_by: cause.principal.id,
    created_at: now,
    updated_at: now,
  }
  return {
    events: [{ type: 'webhook.created', id, webhook, secret: { sealed }, ...partsOf(kept) }],
    tells: [announceToMatcher(cause.self, id, webhook)],
    reply: { ...withMaskedUrl(webhook, 'url'), secret_version: 1 },
  }
}

/**
 * Changes a webhook. Empty tags remove the field. An empty URL and an empty event list are stored
 * as empty values.
 */
export function updateWebhook(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['webhook.update']> & SentUrl,
  cause: Cause,
): Decided<Webhook> {
  const kept = getOwn(state.webhooks, input.webhook_id)
  if (!kept) return refuse('not_found')
  const { webhook } = kept
  const { name, url, events, enabled, tags } = input
  const faults = reservedTags(tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  if (name !== undefined && named(state, name, webhook.id))
    return refuse('already_exists', { field: 'name', name })
  const change = changeWithUrl<'url', Webhook>({
    field: 'url',
    record: webhook,
    storedParts: kept.url_parts,
    wish: {
      name,
      enabled,
      tags,
      ...(url !== '' && { url }),
      ...(events?.length !== 0 && { events }),
    },
    sentParts: input.url_parts,
    at: cause.at,
  })
  if (change && isRefusal(change)) return change
  const shown = withMaskedUrl(webhook, 'url')
  const emptied = {
    ...(url === '' && webhook.url !== '' && { url }),
    ...(events?.length === 0 && webhook.events.length > 0 && { events }),
  }
  if (!change && Object.keys(emptied).length === 0) return { events: [], reply: shown }
  const set: Patch<Webhook> = {
    ...change?.patch,
    ...emptied,
    updated_by: cause.principal.id,
    updated_at: timestamp(cause.at),
  }
  const cleared = Object.fromEntries(
    Object.entries(emptied).map(([field, to]) => [field, { from: shown[field as 'url'], to }]),
  )
  const next = patch(webhook, set)
  const parts = url === '' ? null : change?.url_parts
  return {
    events: [
      {
        type: 'webhook.updated',
        id: webhook.id,
        webhook: set,
        changes: { ...change?.changes, ...cleared },
        ...(parts !== undefined && { url_parts: parts }),
      },
    ],
    tells: [announceToMatcher(cause.self, webhook.id, next)],
    reply: withMaskedUrl(next, 'url'),
  }
}

/**
 * Deletes a webhook. The next attempt of a pending delivery finds no webhook and ends the delivery.
 */
export function deleteWebhook(
  state: ProjectState,
  { webhook_id }: Input<Rows['webhook.delete']>,
  cause: Cause,
): Decided<undefined> {
  const kept = getOwn(state.webhooks, webhook_id)
  return kept
    ? {
        events: [{ type: 'webhook.deleted', id: webhook_id, name: kept.webhook.name }],
        tells: [announceToMatcher(cause.self, webhook_id, undefined)],
        reply: undefined,
      }
    : refuse('not_found')
}

/** Replaces the secret of a webhook. */
export function rotateWebhookSecret(
  { brand }: ProjectOptions,
  state: ProjectState,
  { webhook_id, sealed }: Pick<Input<Rows['webhook.rotate_secret']>, 'webhook_id'> & SealedSecret,
): Decided<Reply<Rows['webhook.rotate_secret']>> {
  const kept = getOwn(state.webhooks, webhook_id)
  if (!kept) return refuse('not_found')
  const version = kept.secret.version + 1
  return {
    events: [
      {
        type: 'webhook.secret_rotated',
        id: webhook_id,
        name: kept.webhook.name,
        version,
        secret: { sealed },
      },
    ],
    reply: {
      secret_ref: secretRef(brand, 'webhook', webhook_id),
      secret_version: version,
    } as Reply<Rows['webhook.rotate_secret']>,
  }
}

/**
 * Sends a test event to the given URL or, by default, to the webhook's URL. The gateway waits for
 * the outcome of the delivery.
 */
export function pingWebhook(
  state: ProjectState,
  { webhook_id, url, url_parts }: Input<Rows['webhook.ping']> & SentUrl,
  cause: Cause,
): Decided<Reply<Rows['webhook.ping']>> {
  const kept = getOwn(state.webhooks, webhook_id)
  if (!kept) return refuse('not_found')
  if (url === undefined && kept.webhook.url === '')
    return refuseFields({ field: 'url', message: 'is required: the webhook has no URL yet' })
  const before = sealedUrlOf(kept.webhook.url, kept)
  const tried = url === undefined ? undefined : resolveMasks(url, url_parts, before)
  if (tried && 'fault' in tried)
    return refuseFields({ field: 'url', message: tried.fault, actual: maskUrl(url ?? '') })
  const delivery_id = cause.mint('delivery')
  const opening: DeliveryOpening = {
    to: { kind: 'webhook', webhook_id, ...(tried && { url: tried.url, ...partsOf(tried) }) },
    event_type: 'ping',
    body: { type: 'ping', data: { webhook_id } },
    once: true,
  }
  return {
    events: [],
    tells: [{ to: { kind: 'delivery', id: delivery_id }, name: 'delivery.open', input: opening }],
    reply: { delivery_id } as never,
  }
}

type On<T extends WebhookEvent['type']> = Extract<WebhookEvent, { type: T }>
/** Reducers for the events of webhooks. */
export const evolveWebhooks = {
  'webhook.created': (
    state: ProjectState,
    { id, webhook, secret, url_parts }: On<'webhook.created'>,
  ): ProjectState => {
    state.webhooks[id] = {
      webhook,
      secret: { ...secret, version: 1 },
      ...(url_parts && { url_parts }),
    }
    return state
  },
  'webhook.updated': (
    state: ProjectState,
    { id, webhook, url_parts }: On<'webhook.updated'>,
  ): ProjectState => {
    const kept = getOwn(state.webhooks, id)
    if (!kept) return state
    const { url_parts: before, ...rest } = kept
    state.webhooks[id] = {
      ...rest,
      webhook: patch(kept.webhook, webhook),
      ...partsAfter(before, url_parts),
    }
    return state
  },
  'webhook.deleted': (state: ProjectState, { id }: On<'webhook.deleted'>): ProjectState => {
    delete state.webhooks[id]
    return state
  },
  'webhook.secret_rotated': (
    state: ProjectState,
    { id, version, secret }: On<'webhook.secret_rotated'>,
  ): ProjectState => {
    const kept = getOwn(state.webhooks, id)
    if (kept) state.webhooks[id] = { ...kept, secret: { ...secret, version } }
    return state
  },
}

/** Returns a webhook with its sealed secret, or null if there is no such webhook. */
export const webhookOf = (
  { webhooks: all }: ProjectState,
  { webhook_id }: { readonly webhook_id: string },
): WebhookWithSecret | null => getOwn(all, webhook_id) ?? null
