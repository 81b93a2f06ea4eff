/** Helpers for tests of interactions: opened interactions, answers and reviews. */

import { interactionActor } from '../../../actors/interactions/interaction.ts'
import type { InteractionState } from '../../../actors/interactions/state.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import { given, type Outcome, type Scene } from '../../support/given.ts'

export type Asked = Scene<InteractionState>
export type After = Outcome<InteractionState>

export const asked = (input: Record<string, unknown> = {}): After =>
  given<InteractionState>(interactionActor({ brand: 'Service' })).when('interaction.create', {
    kind: 'request_approval',
    title: 'Go?',
    target_user_ids: ['ada'],
    spec: { mode: 'confirm' },
    ...input,
  })
export const answer = (
  scene: Asked,
  who: string,
  value: unknown = true,
  more: Record<string, unknown> = {},
): After => scene.when('interaction.respond', { value, roles: [], ...more }, by(who))
export const by = (id: string) => ({ principal: { type: 'user' as const, id } })
export const record = (scene: Asked): Interaction => scene.state.record
export const review = (
  scene: Asked,
  who: string,
  action: 'accept' | 'request_changes',
  comment?: string,
): After =>
  scene.when('interaction.review', { action, ...(comment !== undefined && { comment }) }, by(who))
