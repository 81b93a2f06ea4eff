/** Stores and lists the webhooks of a project, and the deliveries to them. */

import type { Viewer } from '../../../protocol/channels/schema.ts'
import { parseTimestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { withMaskedUrl } from '../../../protocol/masked-url.ts'
import { patch } from '../../../protocol/patch.ts'
import type { DeliveryEvent } from '../../../protocol/webhooks/delivery.ts'
import type { DeliveryRecord, Webhook, WebhookEvent } from '../../../protocol/webhooks/rows.ts'
import { equalityConditions } from '../../conditions.ts'
import { newestRecords, recordWith } from '../../newest.ts'
import type { Page, Paging } from '../../page.ts'
import type { Store } from '../../store.ts'
import { WriteBackCache } from '../../write-back.ts'
import { eventViewerValues, readableEvent } from '../sessions/visibility.ts'

/** Milliseconds for which a delivery is shown in lists. */
const LISTED_MS = 30 * 86_400_000

/** Applies the webhook events in an entry of a project. URLs are stored masked. */
export function applyWebhooks(store: Store, { entry }: PlacedEntry): void {
  const project = store.numberOf(entry.project)
  for (const event of entry.events as readonly WebhookEvent[]) {
    if (event.type === 'webhook.created') {
      const { id, webhook } = event
      store.run(
        'INSERT OR REPLACE INTO webhooks (id, project, enabled, created_at, record) VALUES (?, ?, ?, ?, ?)',
        id,
        project,
        Number(webhook.enabled),
        parseTimestamp(webhook.created_at) ?? entry.origin.at,
        JSON.stringify(withMaskedUrl(webhook, 'url')),
      )
    } else if (event.type === 'webhook.updated') {
      const known = find(store, project, event.id)
      if (!known) continue
      const webhook = withMaskedUrl(patch(known, event.webhook), 'url')
      store.run(
        'UPDATE webhooks SET enabled = ?, record = ? WHERE id = ?',
        Number(webhook.enabled),
        JSON.stringify(webhook),
        event.id,
      )
    } else if (event.type === 'webhook.deleted')
      store.run('DELETE FROM webhooks WHERE id = ? AND project = ?', event.id, project)
  }
}
const find = (store: Store, project: number, id: string): Webhook | undefined =>
  recordWith(store, 'webhooks', project, id)
const missing: Refusal = refuse(
  'not_found',
  { resource: 'webhook' },
  'There is no such webhook in this project.',
)

/** Returns a webhook of a project, or `not_found` if the project has no such webhook. */
export const webhookGet = (
  store: Store,
  project: number,
  { webhook_id }: { readonly webhook_id: string },
): Webhook | Refusal => find(store, project, webhook_id) ?? missing
/** Returns webhooks of a project, newest first. */
export const webhookList = (
  store: Store,
  project: number,
  input: Paging & { readonly enabled?: boolean },
): Page<Webhook> =>
  newestRecords(
    store,
    'webhooks',
    project,
    equalityConditions({
      enabled: input.enabled === undefined ? undefined : Number(input.enabled),
    }),
    input,
  )

interface DeliveryRow {
  readonly project: number
  /** Id of the private session to which the delivered event belongs; null for other events. */
  readonly session: string | null
  /** Id of the principal that owns the private artifact of the event; null for other events. */
  readonly owner: string | null
  readonly record: DeliveryRecord
  stored: boolean
}
const deliveryCache = (store: Store): WriteBackCache<DeliveryRow> =>
  store.cacheOf(
    'deliveries',
    () =>
      new WriteBackCache(
        (id): DeliveryRow | undefined => {
          const row = store.one<
            Omit<DeliveryRow, 'record' | 'stored'> & { readonly record: string }
          >('SELECT project, session, owner, record FROM deliveries WHERE id = ?', id)
          return (
            row && {
              ...row,
              record: JSON.parse(row.record) as DeliveryRecord,
              stored: true,
            }
          )
        },
        (row, id) => {
          const { project, session, owner, record } = row
          if (row.stored)
            store.run('UPDATE deliveries SET record = ? WHERE id = ?', JSON.stringify(record), id)
          else
            store.run(
              `INSERT OR REPLACE INTO deliveries (id, project, webhook, session, owner, created_at, record)
               VALUES (?, ?, ?, ?, ?, ?, ?)`,
              id,
              project,
              record.webhook_id,
              session,
              owner,
              parseTimestamp(record.created_at) ?? 0,
              JSON.stringify(record),
            )
          row.stored = true
        },
      ),
  )
/** Applies an entry of a delivery. Test deliveries and callbacks of interactions are not listed. */
export function applyDelivery(store: Store, { entry }: PlacedEntry): void {
  const project = store.numberOf(entry.project)
  const rows = deliveryCache(store)
  for (const event of entry.events as readonly DeliveryEvent[]) {
    if (event.type === 'delivery.opened') {
      const {
        opening: { to, once, private_session: session = null, private_owner: owner = null },
        delivery,
      } = event
      if (to.kind === 'webhook' && !once)
        rows.set(event.id, {
          project,
          session,
          owner,
          record: delivery as DeliveryRecord,
          stored: false,
        })
      continue
    }
    const row = rows.get(event.id)
    if (row?.project === project)
      rows.set(event.id, { ...row, record: patch(row.record, event.delivery) })
  }
}
/**
 * Returns deliveries to a webhook, newest first, or `not_found` if the project has no such webhook.
 * @param now Unix milliseconds.
 */
export function deliveryList(
  store: Store,
  project: number,
  input: Paging & { readonly webhook_id: string; readonly viewer?: Viewer },
  now: number,
): Page<DeliveryRecord> | Refusal {
  if (!find(store, project, input.webhook_id)) return missing
  const { webhook_id, viewer } = input
  return newestRecords(
    store,
    'deliveries',
    project,
    [
      ['webhook = ?', webhook_id],
      ['created_at > ?', now - LISTED_MS],
      ...(viewer ? [[readableEvent('deliveries'), ...eventViewerValues(viewer)] as const] : []),
    ],
    input,
  )
}
