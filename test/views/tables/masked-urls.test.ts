/** Earlier releases stored URLs in plain text. A view of their journal masks the query values. */
import t from 'tap'
import type { Event } from '../../../protocol/entry.ts'
import { View } from '../../../views/view.ts'
import { ask, at, Journal } from '../support/journal.ts'

const clear = 'https://example.org/hook?token=t0p'
const masked = 'https://example.org/hook?token=***'
const times = { created_at: at(1), updated_at: at(1) }
const secret = { sealed: 's1' }

t.test('records and the audit log of an earlier release contain no token', async (t) => {
  const journal = new Journal()
  const view = View.open(':memory:')
  const changes = { from: 'https://example.org/?old=t0p', to: clear }
  const events: readonly object[] = [
    {
      type: 'action.created',
      id: 'act_1',
      action: { id: 'act_1', name: 'a.b', endpoint_kind: 'http', endpoint_url: clear, ...times },
      secret,
    },
    {
      type: 'action.updated',
      id: 'act_1',
      name: 'a.b',
      action: { endpoint_url: clear },
      changes: { endpoint_url: changes },
    },
    {
      type: 'webhook.created',
      id: 'wbh_1',
      webhook: { id: 'wbh_1', name: 'h', url: clear, events: [], enabled: true, ...times },
      secret,
    },
    { type: 'webhook.updated', id: 'wbh_1', webhook: { url: clear }, changes: { url: changes } },
  ]
  const place = { kind: 'project', project: 'prj_a', id: 'prj_a' } as const
  const interaction = {
    id: 'int_1',
    status: 'pending',
    kind: 'request_approval',
    title: 'Go?',
    target_user_ids: [],
    responses: [],
    lifecycle: [],
    resolution_policy: { type: 'any_one' },
    consumer: {
      kind: 'http_subscriber',
      http_subscriber: { callback_url: clear, secret_ref: 'callbacks' },
    },
    ...times,
  }
  view.apply([
    journal.commit(
      0,
      { ...place, events: events as readonly Event[] },
      {
        kind: 'interaction',
        project: 'prj_a',
        id: 'int_1',
        events: [
          { type: 'interaction.created', id: 'int_1', interaction, source: {} },
        ] as readonly object[] as readonly Event[],
      },
    ),
  ])
  const read = {
    action: ask(view, 'action.get', { action_name: 'a.b' }),
    webhook: ask(view, 'webhook.get', { webhook_id: 'wbh_1' }),
    interaction: ask(view, 'interaction.get', { id: 'int_1' }),
    audit: ask(view, 'audit.list', {}, ''),
  }
  t.match(read, {
    action: { endpoint_url: masked },
    webhook: { url: masked },
    interaction: { consumer: { http_subscriber: { callback_url: masked } } },
  })
  t.match(
    JSON.stringify(read.audit),
    JSON.stringify({ ...changes, from: 'https://example.org/?old=***', to: masked }),
  )
  t.notMatch(JSON.stringify(read), 't0p')
})
