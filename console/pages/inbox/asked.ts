/**
 * The question of an interaction, and who may answer it. The functions are pure. The service checks
 * every answer again.
 */
import {
  currentResponses,
  isSatisfied,
  reviewersOf,
} from '../../../protocol/interactions/resolve.ts'
import type { Interaction, Question, Response } from '../../../protocol/interactions/schema.ts'

/** The person's part in an interaction. `answered`: the person has already responded. */
export type Part = 'answer' | 'review' | 'answered' | 'none'

const OPEN: ReadonlySet<string> = new Set(['pending', 'in_review'])
/** Returns whether an interaction still waits for an answer or a review. */
export const isOpen = ({ status }: Pick<Interaction, 'status'>): boolean => OPEN.has(status)

/**
 * Returns the person's part in an interaction.
 * @param mine the person's id, and `role:…` for each role.
 */
export function partOf(interaction: Interaction, me: string, mine: ReadonlySet<string>): Part {
  const answered = currentResponses(interaction).some(
    ({ responder_user_id }) => responder_user_id === me,
  )
  if (interaction.status === 'pending' && interaction.target_user_ids.some((id) => mine.has(id)))
    return answered ? 'answered' : 'answer'
  if (interaction.status === 'in_review' && reviewersOf(interaction).some((id) => mine.has(id)))
    return answered ? 'answered' : 'review'
  return 'none'
}

/** An entered value. `undefined` means that nothing has been chosen yet. */
export type Entered = boolean | string | readonly string[] | undefined

/** Returns the initial value of a form. */
export function initialOf(question: Question): Entered {
  switch (question.mode) {
    case 'confirm':
      return question.default_confirmed
    case 'select':
      return question.default_value
    case 'multi_select':
      return question.default_values ?? []
    case 'input':
      return question.default_text ?? ''
  }
}

/**
 * Returns the value after the option at `index` is picked. In a question with `multi_select`,
 * picking toggles the option.
 */
export function pick(question: Question, entered: Entered, index: number): Entered {
  const option = question.options?.[index]
  if (!option) return entered
  if (question.mode === 'select') return option.value
  if (question.mode !== 'multi_select') return entered
  const chosen = Array.isArray(entered) ? (entered as readonly string[]) : []
  return chosen.includes(option.value)
    ? chosen.filter((value) => value !== option.value)
    : (question.options ?? [])
        .map(({ value }) => value)
        .filter((value) => value === option.value || chosen.includes(value))
}

/** A draft of an answer. */
export interface Draft {
  readonly value: Entered
  readonly comment: string
}
/**
 * Parses a stored draft. Returns undefined for an empty text, or if the draft does not fit the
 * question.
 */
export function readDraft(stored: string, question: Question): Draft | undefined {
  if (stored === '') return undefined
  try {
    const { value, comment } = JSON.parse(stored) as { value?: unknown; comment?: unknown }
    const values = (question.options ?? []).map((option) => option.value)
    const fits = {
      confirm: value === undefined || typeof value === 'boolean',
      input: typeof value === 'string',
      select: value === undefined || values.includes(value as string),
      multi_select: Array.isArray(value) && value.every((one) => values.includes(one as string)),
    }[question.mode]
    return fits
      ? { value: value as Entered, comment: typeof comment === 'string' ? comment : '' }
      : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns an answer as text in which options have their labels. Returns undefined for a value that
 * is neither a boolean, nor a string, nor an array of strings.
 */
export function answerText(
  question: Question,
  value: unknown,
  words: { readonly yes: string; readonly no: string; readonly none: string },
): string | undefined {
  const labelOf = (one: string): string =>
    question.options?.find((option) => option.value === one)?.label ?? one
  if (typeof value === 'boolean') return value ? words.yes : words.no
  if (typeof value === 'string') return labelOf(value)
  if (Array.isArray(value) && value.every((one) => typeof one === 'string'))
    return value.length === 0 ? words.none : (value as string[]).map(labelOf).join(', ')
  return undefined
}

/** Returns the answers of all rounds: the newest round first, each with its oldest answer first. */
export const answersOf = ({ responses }: Pick<Interaction, 'responses'>): readonly Response[] =>
  [...responses].sort(
    (a, b) => (b.attempt ?? 1) - (a.attempt ?? 1) || a.responded_at.localeCompare(b.responded_at),
  )

/**
 * Returns how many answers a question has in this round (`given`), and how many it needs
 * (`needed`). Once there are enough answers, `given` is equal to `needed`, never greater.
 */
export function progressOf(interaction: Interaction): {
  readonly given: number
  readonly needed: number
} {
  const { resolution_policy: policy, target_user_ids } = interaction
  const given = new Set(currentResponses(interaction).map((one) => one.responder_user_id))
  const needed =
    policy.type === 'all_of'
      ? target_user_ids.length
      : policy.type === 'quorum'
        ? (policy.threshold ?? 1)
        : 1
  return isSatisfied(policy, target_user_ids, [...given])
    ? { given: needed, needed }
    : { given: given.size, needed }
}

/** Returns a URL if its protocol is safe for a link; otherwise undefined. */
export function safeUrl(url: string | undefined): string | undefined {
  if (url === undefined || !URL.canParse(url)) return undefined
  return ['http:', 'https:', 'mailto:'].includes(new URL(url).protocol) ? url : undefined
}
/** Returns the id of the session whose turn asked the question, if any. */
export const sessionOf = ({ consumer }: Pick<Interaction, 'consumer'>): string | undefined =>
  consumer.agent_tool?.session_id

/**
 * Returns the id to select after a step in a list; undefined for an empty list.
 * @param at last known index of the selected item, used if the item is no longer in the list.
 */
export function stepTo(
  ids: readonly string[],
  selected: string | undefined,
  at: number,
  step: 1 | -1,
): string | undefined {
  const index = selected === undefined ? -1 : ids.indexOf(selected)
  const next = index >= 0 ? index + step : selected === undefined ? 0 : step === 1 ? at : at - 1
  return ids[Math.max(0, Math.min(ids.length - 1, next))]
}
