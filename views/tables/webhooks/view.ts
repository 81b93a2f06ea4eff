/** The view of webhooks and their deliveries. */
import { defineView } from '../../define-view.ts'
import { applyAudit } from '../access/audit.ts'
import { applyDelivery, applyWebhooks, deliveryList, webhookGet, webhookList } from './webhooks.ts'

const tables = `
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  enabled INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX webhooks_new ON webhooks (project, created_at, id);
CREATE TABLE deliveries (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  webhook TEXT NOT NULL,
  session TEXT,
  owner TEXT,
  created_at INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX deliveries_new ON deliveries (webhook, created_at, id);
`

export const webhooks = defineView({
  kinds: { project: applyWebhooks, delivery: [applyAudit, applyDelivery] },
  gathers: ['delivery'],
  tables,
  queries: {
    'webhook.list': ({ store, project }, input) => webhookList(store, project, input),
    'webhook.get': ({ store, project }, input) => webhookGet(store, project, input),
    'webhook.deliveries': ({ store, project, now }, input) =>
      deliveryList(store, project, input, now),
  },
})
