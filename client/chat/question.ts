/**
 * Shows a question to users: a form while it can be answered, then its outcome. Entered text is
 * preserved while the form is open.
 */
import { questionOf } from '../../protocol/interactions/question.ts'
import type { Interaction, Question } from '../../protocol/interactions/schema.ts'
import { displayText, el } from './dom.ts'

/**
 * Sends an answer.
 * @returns the reason for a rejection; undefined if the answer is accepted.
 */
export type Answering = (
  interaction: string,
  value: unknown,
  comment: string,
) => Promise<string | undefined>

export class QuestionRow {
  readonly element: HTMLLIElement
  readonly #outcome = el('p', { class: 'outcome', hidden: true })
  readonly #form: HTMLFormElement | undefined

  constructor(interaction: Interaction, answering: Answering) {
    const { id, title, description, context } = interaction
    this.#form = interaction.status === 'pending' ? formOf(interaction, answering) : undefined
    this.element = el(
      'li',
      { class: 'question', 'data-id': id },
      el('p', { class: 'speaker' }, 'Question'),
      el('h3', {}, title),
      description !== undefined && el('p', { class: 'text' }, description),
      context &&
        el(
          'details',
          { open: true },
          el('summary', {}, 'Details'),
          el('pre', { tabindex: '0' }, displayText(context)),
        ),
      this.#form,
      this.#outcome,
    )
  }

  update(interaction: Interaction): void {
    const open = interaction.status === 'pending'
    this.#outcome.hidden = open
    this.#outcome.textContent = open ? '' : outcomeOf(interaction)
    if (this.#form && !open) this.#form.hidden = true
  }
}

function outcomeOf({
  status,
  outcome,
  responses,
  resolving_response_id,
  cancel_reason,
}: Interaction): string {
  const comment = responses.find(({ id }) => id === resolving_response_id)?.comment
  switch (status) {
    case 'completed':
      return (
        `Answered: ${outcome === true ? 'yes' : outcome === false ? 'no' : displayText(outcome)}` +
        (comment === undefined ? '' : ` (${comment})`)
      )
    case 'expired':
      return 'The question expired.'
    case 'cancelled':
      return `Withdrawn${cancel_reason === undefined ? '' : `: ${cancel_reason}`}`
    case 'in_review':
      return 'The answers are being reviewed.'
    case 'pending':
      return ''
  }
}

function formOf(interaction: Interaction, answering: Answering): HTMLFormElement {
  const { id } = interaction
  const question = questionOf(interaction)
  const fault = el('p', { class: 'fault', role: 'alert' })
  const comment = el('textarea', {
    id: `comment-${id}`,
    name: 'comment',
    rows: '1',
    maxlength: '16384',
  })
  const confirm = question.mode === 'confirm'
  const buttons = confirm
    ? [
        el('button', { type: 'submit', value: 'true' }, 'Yes'),
        el('button', { type: 'submit', value: 'false', class: 'other' }, 'No'),
      ]
    : [el('button', { type: 'submit' }, 'Answer')]
  const form = el(
    'form',
    {},
    ...controlsOf(question, id),
    el('label', { for: comment.id }, 'Comment (optional)'),
    comment,
    fault,
    el('p', { class: 'buttons' }, ...buttons),
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const button = event.submitter as HTMLButtonElement | null
    const value = confirm ? button?.value === 'true' : chosenOf(question, new FormData(form))
    if (value === undefined) return void (fault.textContent = 'Please choose an answer.')
    const enable = (on: boolean) => {
      for (const one of buttons) one.disabled = !on
    }
    fault.textContent = ''
    enable(false)
    void answering(id, value, comment.value.trim()).then((wrong) => {
      if (wrong === undefined) return
      fault.textContent = wrong
      enable(true)
    })
  })
  return form
}

function controlsOf(
  {
    mode,
    options = [],
    default_value,
    default_values = [],
    default_text = '',
    placeholder,
    multiline,
  }: Question,
  id: string,
): HTMLElement[] {
  if (mode === 'confirm') return []
  if (mode === 'input') {
    const common = { id: `value-${id}`, name: 'value', placeholder }
    const field = multiline
      ? el('textarea', { ...common, rows: '3' }, default_text)
      : el('input', { ...common, type: 'text', value: default_text })
    return [el('label', { for: field.id }, 'Your answer'), field]
  }
  const type = mode === 'select' ? 'radio' : 'checkbox'
  const on = (value: string): boolean =>
    mode === 'select' ? value === default_value : default_values.includes(value)
  return [
    el(
      'fieldset',
      {},
      el('legend', {}, 'Your answer'),
      ...options.map(({ value, label, description }) =>
        el(
          'label',
          { class: 'choice' },
          el('input', { type, name: 'value', value, checked: on(value) }),
          ` ${label}`,
          description !== undefined && el('span', { class: 'note' }, ` ${description}`),
        ),
      ),
    ),
  ]
}
/** Returns the value entered in a form; undefined if nothing was chosen. */
function chosenOf({ mode }: Question, fields: FormData): unknown {
  const given = fields.getAll('value').map(String)
  return mode === 'multi_select'
    ? given
    : mode === 'input'
      ? (given[0]?.replaceAll('\r\n', '\n') ?? '')
      : given[0]
}
