/** Helpers for tests of interactions: opened interactions, answers and reviews. */

import { interactionActor } from '../../../actors/interactions/interaction.ts'
import type { InteractionState } from '../../../actors/interactions/state.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import { given, type Outcome, type Scene } from '../../support/given.ts'

export type Asked = Scene<InteractionState>
export type After = Outcome<InteractionState>

/** An interaction that a client opened; by default, it asks one person for approval. */
export const asked = (input: Record<string, unknown> = {}): After =>
  given<InteractionState>(interactionActor({ brand: 'Service' })).when('interaction.create', {
    kind: 'request_approval',
    title: 'Go?',
    target_user_ids: ['ada'],
    spec: { mode: 'confirm' },
    ...input,
  })
/** The result of a person's answer. */
export const answer = (
  scene: Asked,
  who: string,
  value: unknown = true,
  more: Record<string, unknown> = {},
): After => scene.when('interaction.respond', { value, roles: [], ...more }, by(who))
/** The origin of a command by this person. */
export const by = (id: string) => ({ principal: { type: 'user' as const, id } })
export const record = (scene: Asked): Interaction => scene.state.record
/** The result of a person's review. */
export const review = (
  scene: Asked,
  who: string,
  action: 'accept' | 'request_changes',
  comment?: string,
): After =>
  scene.when('interaction.review', { action, ...(comment !== undefined && { comment }) }, by(who))
