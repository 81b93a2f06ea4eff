/** The question of an interaction. */
import type { Interaction, Question } from './schema.ts'

/**
 * Returns the question of an interaction. Without a spec, an approval asks for a confirmation, and
 * any other interaction accepts any text.
 */
export const questionOf = ({ spec, kind }: Pick<Interaction, 'spec' | 'kind'>): Question =>
  spec ?? { mode: kind === 'request_approval' ? 'confirm' : 'input', multiline: true }
