/**
 * Composes the text of an e-mail notification. Plain text looks the same in every mail program and
 * loads no external content.
 */
import { minuteOf } from '../../gateway/pages/answer/page.ts'
import type { Interaction } from '../../protocol/interactions/schema.ts'
import type { Notice } from '../host/deps.ts'

/**
 * The recipient of one e-mail. `target` is the recipient's id, and is present only if the
 * interaction targets this id rather than a role.
 */
export interface Recipient {
  readonly email: string
  readonly name?: string
  readonly target?: string
}

const prefixes = {
  requested: '',
  submitted: 'Review: ',
  changes_requested: 'Changes requested: ',
} as const satisfies Record<Notice['about'], string>

/**
 * Returns the subject and text of the e-mail.
 * @param url the recipient's personal answer link, if the e-mail has one.
 */
export function emailOf(
  about: Notice['about'],
  { id, title, description, expires_at, review_feedback }: Interaction,
  { name }: Recipient,
  url?: string,
): { subject: string; text: string } {
  const until = expires_at === undefined ? '' : ` until ${minuteOf(expires_at)}`
  const ask =
    about === 'submitted'
      ? `This has been answered and awaits your review${until}.`
      : url === undefined
        ? `This awaits an answer${until}.`
        : `Answer here${until}:\n${url}\n\nThis link is personal and accepts one answer. Do not share it.`
  const parts = [
    ...(name === undefined ? [] : [`Hello ${name},`]),
    title,
    ...(description ? [description] : []),
    ...(about === 'changes_requested' && review_feedback
      ? [`Requested changes:\n${review_feedback}`]
      : []),
    ask,
    `(${id})`,
  ]
  return {
    subject: `${prefixes[about]}${title}`.replace(/\s+/g, ' '),
    text: `${parts.join('\n\n')}\n`,
  }
}
