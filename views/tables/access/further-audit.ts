/**
 * The audit rules of console sessions and sign-in links (console-audit.ts), of shared views of
 * lists, and of deliveries that were sent again. Private views are not audited, because only their
 * owner sees them. First deliveries are not audited, because the service sends them without a
 * request.
 */
import type { SavedViewEvent } from '../../../protocol/preferences/schema.ts'
import type { DeliveryEvent } from '../../../protocol/webhooks/delivery.ts'
import { type Rule, rule } from './audit-rule.ts'
import { consoleAudit } from './console-audit.ts'

type On<T extends SavedViewEvent['type']> = Extract<SavedViewEvent, { readonly type: T }>
type Opened = Extract<DeliveryEvent, { readonly type: 'delivery.opened' }>
const own: { readonly [T in SavedViewEvent['type'] | Opened['type']]: Rule } = {
  'saved_view.created': rule<On<'saved_view.created'>>('create', 'saved_view', ({ view }) =>
    view.shared ? { resource_id: view.id, name: view.name } : undefined,
  ),
  'saved_view.updated': rule<On<'saved_view.updated'>>(
    'update',
    'saved_view',
    ({ audited }) => audited,
  ),
  'saved_view.deleted': rule<On<'saved_view.deleted'>>(
    'delete',
    'saved_view',
    ({ audited }) => audited,
  ),
  'delivery.opened': rule<Opened>(
    'create',
    'webhook_delivery',
    ({ delivery: { webhook_id, resend_of } }) =>
      typeof resend_of === 'string'
        ? { changes: { webhook_id: { to: webhook_id }, resend_of: { to: resend_of } } }
        : undefined,
  ),
}
export const furtherAudit = { ...consoleAudit, ...own }
