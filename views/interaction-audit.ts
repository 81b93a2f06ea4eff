/** What the audit log tells of interactions: who asked, who answered what, who reviewed, and how it ended. */
import type { AuditEntry } from '../protocol/api/projects.ts'
import type { Changes } from '../protocol/api/workflows.ts'
import type { InteractionEvent } from '../protocol/interaction/events.ts'

type Rule<T> = {
  readonly resource_type: 'interaction'
  readonly action: AuditEntry['action']
  readonly name?: (event: Extract<InteractionEvent, { readonly type: T }>) => string
  readonly changes?: (event: Extract<InteractionEvent, { readonly type: T }>) => Changes
}
const resource_type = 'interaction'

/** How each event of an interaction is audited. */
export const interactionRules: { readonly [T in InteractionEvent['type']]: Rule<T> } = {
  'interaction.created': { resource_type, action: 'create', name: ({ interaction }) => interaction.title },
  'interaction.responded': {
    resource_type, action: 'update',
    changes: ({ response }) => ({ response: { to: response && { id: response.id, value: response.value, ...(response.comment !== undefined && { comment: response.comment }), ...(response.attempt !== undefined && { attempt: response.attempt }) } } }),
  },
  'interaction.submitted': { resource_type, action: 'update', changes: () => ({ status: { from: 'pending', to: 'in_review' } }) },
  'interaction.reviewed': { resource_type, action: 'update', changes: ({ set }) => ({ status: { from: 'in_review', to: 'pending' }, review_feedback: { to: set?.review_feedback } }) },
  'interaction.resolved': {
    resource_type, action: 'update',
    changes: ({ set, outcome }) => ({ status: { to: set?.status }, ...(outcome && { outcome: { to: outcome.value } }), ...(typeof set?.cancel_reason === 'string' && { cancel_reason: { to: set.cancel_reason } }) }),
  },
  'interaction.linked': { resource_type, action: 'update', changes: ({ targets }) => ({ links: { to: targets } }) },
  'interaction.deleted': { resource_type, action: 'delete' },
}
