/** A question of an agent: a form while it can be answered, then its outcome. */

import { useId, useState } from 'preact/hooks'
import { questionOf } from '../../../../protocol/interactions/question.ts'
import type { Interaction, Question } from '../../../../protocol/interactions/schema.ts'
import { ApiError, call } from '../../../api/client.ts'
import { Button } from '../../../design/button.tsx'
import { TextArea, TextField } from '../../../design/field.tsx'
import { Badge } from '../../../design/states.tsx'
import { designText } from '../../../design/text.ts'
import { Time } from '../../../design/time.tsx'
import { Tree } from '../../../design/tree.tsx'
import { Markdown } from '../../../markdown/markdown.tsx'
import { usePeople } from '../../../people/people.ts'
import { conversationText as text } from './text.ts'

const answerText = (value: unknown): string =>
  value === true
    ? text.yes
    : value === false
      ? text.no
      : typeof value === 'string'
        ? value
        : JSON.stringify(value)

function outcomeOf(interaction: Interaction, nameOf: (id: string) => string | undefined): string {
  const { status, outcome, responses, resolving_response_id, cancel_reason } = interaction
  const comment = responses.find(({ id }) => id === resolving_response_id)?.comment
  switch (status) {
    case 'completed':
      return comment === undefined
        ? text.answered(answerText(outcome))
        : designText.detailed(text.answered(answerText(outcome)), comment)
    case 'expired':
      return text.expired
    case 'cancelled':
      return cancel_reason === undefined ? text.withdrawn : text.withdrawnWhy(cancel_reason)
    case 'in_review':
      return text.inReview
    case 'pending':
      return text.questionFor(interaction.target_user_ids.map((id) => nameOf(id) ?? id).join(', '))
  }
}

/** Shows a question. `answered` receives its new state, and `done` is called to move the focus. */
export function QuestionView({
  interaction,
  project,
  answered,
  done,
}: {
  readonly interaction: Interaction
  readonly project: string
  readonly answered: (interaction: Interaction) => void
  readonly done: () => void
}) {
  const { id, title, description, context, status, expires_at } = interaction
  const { mine, nameOf } = usePeople(project)
  const open = status === 'pending' && interaction.target_user_ids.some((one) => mine.has(one))
  const [fault, setFault] = useState('')
  const respond = async (value: unknown, comment: string): Promise<void> => {
    setFault('')
    try {
      const of = { project, id, value, ...(comment !== '' && { comment }) }
      answered(await call('interaction.respond', of))
      done()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setFault(error.message)
    }
  }
  return (
    <div class="talk-question">
      <div class="row">
        <Badge tone={status === 'pending' ? 'warn' : 'neutral'}>{text.question}</Badge>
        {status === 'pending' && expires_at !== undefined && (
          <span class="small soft">
            {text.expires} <Time at={expires_at} relative />
          </span>
        )}
      </div>
      <h3 class="user-text">{title}</h3>
      {description !== undefined && <Markdown text={description} />}
      {context && (
        <details class="folded" open>
          <summary>{text.details}</summary>
          <Tree value={context} open={2} />
        </details>
      )}
      {open ? (
        <Form question={questionOf(interaction)} respond={respond} />
      ) : (
        <p class="outcome user-text">{outcomeOf(interaction, nameOf)}</p>
      )}
      {fault !== '' && (
        <p class="fault user-text" role="alert">
          {fault}
        </p>
      )}
    </div>
  )
}

function Form({
  question,
  respond,
}: {
  readonly question: Question
  readonly respond: (value: unknown, comment: string) => Promise<void>
}) {
  const { mode, default_value, default_values = [], default_text = '' } = question
  const [value, setValue] = useState(mode === 'select' ? (default_value ?? '') : default_text)
  const [values, setValues] = useState<readonly string[]>(default_values)
  const [comment, setComment] = useState('')
  const send = (answer: unknown) => respond(answer, comment.trim())
  const given = mode === 'multi_select' ? values : value
  const missing = mode === 'select' && value === ''
  return (
    <form class="stack close" onSubmit={(event) => event.preventDefault()}>
      {mode === 'input' && <InputAnswer question={question} value={value} onValue={setValue} />}
      {(mode === 'select' || mode === 'multi_select') && (
        <Choices
          question={question}
          chosen={mode === 'select' ? [value] : values}
          onChosen={(next) => (mode === 'select' ? setValue(next[0] ?? '') : setValues(next))}
        />
      )}
      <TextField label={text.comment} value={comment} onValue={setComment} maxLength={16_384} />
      <div class="row">
        {mode === 'confirm' ? (
          <>
            <Button kind="primary" onClick={() => send(true)}>
              {text.yes}
            </Button>
            <Button onClick={() => send(false)}>{text.no}</Button>
          </>
        ) : (
          <Button
            kind="primary"
            disabled={missing}
            {...(missing && { title: text.choose })}
            onClick={() => send(given)}
          >
            {text.answer}
          </Button>
        )}
      </div>
    </form>
  )
}

function InputAnswer({
  question: { multiline, placeholder },
  value,
  onValue,
}: {
  readonly question: Question
  readonly value: string
  readonly onValue: (value: string) => void
}) {
  const props = {
    label: text.yourAnswer,
    value,
    onValue,
    ...(placeholder !== undefined && { placeholder }),
  }
  return multiline ? <TextArea {...props} rows={3} /> : <TextField {...props} />
}

function Choices({
  question: { mode, options = [] },
  chosen,
  onChosen,
}: {
  readonly question: Question
  readonly chosen: readonly string[]
  readonly onChosen: (chosen: readonly string[]) => void
}) {
  const name = useId()
  return (
    <fieldset class="talk-choices">
      <legend>{text.yourAnswer}</legend>
      {options.map(({ value, label, description }) => (
        <label class="choice" key={value}>
          <input
            type={mode === 'select' ? 'radio' : 'checkbox'}
            name={name}
            checked={chosen.includes(value)}
            onChange={({ currentTarget }) =>
              onChosen(
                mode === 'select'
                  ? [value]
                  : currentTarget.checked
                    ? [...chosen, value]
                    : chosen.filter((one) => one !== value),
              )
            }
          />
          <span>
            <span class="user-text">{label}</span>
            {description !== undefined && <span class="soft small user-text"> {description}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  )
}
