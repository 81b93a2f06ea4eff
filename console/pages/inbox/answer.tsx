/**
 * The form in which a person answers a question. Entered values survive a reload. An answer cannot
 * be withdrawn, so pressing the key of a choice only selects the choice. The answer is sent by the
 * button, by Ctrl+Enter, and by Enter in a field that submits the form.
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import { questionOf } from '../../../protocol/interactions/question.ts'
import type { Interaction, Question } from '../../../protocol/interactions/schema.ts'
import { ApiError, call } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { useDraft } from '../../shell/drafts.ts'
import { type Command, useCommands } from '../../shell/shortcuts.ts'
import { type Draft, type Entered, initialOf, pick, readDraft } from './asked.ts'
import { inboxText as text } from './text.ts'

/** Returns the storage key of an answer's draft. */
export const draftKey = (id: string): string => `answer.${id}`
/** Number of options that can be chosen with a digit key. */
const MAX_KEYS = 9
/** Maximum length of a comment in characters, as in the service. */
const MAX_COMMENT_CHARACTERS = 16_384

/** Calls `send` on Ctrl+Enter or Cmd+Enter anywhere on the page, unless a dialog is open. */
export function useSendKey(send: () => void): void {
  const latest = useRef(send)
  latest.current = send
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
      if (document.querySelector('dialog[open]')) return
      event.preventDefault()
      latest.current()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}

interface Choice {
  readonly value: string
  readonly label: string
  readonly description?: string | undefined
  readonly key: string | undefined
  readonly tone?: 'good' | 'bad'
}
const choicesOf = (question: Question): readonly Choice[] =>
  question.mode === 'confirm'
    ? [
        { value: 'true', label: text.approve, key: 'a', tone: 'good' },
        { value: 'false', label: text.reject, key: 'r', tone: 'bad' },
      ]
    : (question.options ?? []).map(({ value, label, description }, index) => ({
        value,
        label,
        description,
        key: index < MAX_KEYS ? String(index + 1) : undefined,
      }))

/** Shows the choices as large click targets. The first `MAX_KEYS` also have a digit key. */
function Choices({
  question,
  value,
  onPick,
}: {
  readonly question: Question
  readonly value: Entered
  readonly onPick: (index: number) => void
}) {
  const choices = choicesOf(question)
  const isChosen = (one: string): boolean =>
    Array.isArray(value) ? value.includes(one) : String(value) === one
  return (
    <fieldset
      class={question.mode === 'confirm' ? 'answer-choices two' : 'answer-choices'}
      onKeyDown={(event) => {
        const index = choices.findIndex(({ key }) => key === event.key)
        if (index < 0 || event.ctrlKey || event.metaKey || event.altKey) return
        event.preventDefault()
        onPick(index)
      }}
    >
      <legend class="label">{text.yourAnswer}</legend>
      {choices.map(({ value: one, label, description, key, tone }, index) => (
        <label key={one} class={`answer-choice ${tone ?? ''}`}>
          <input
            type={question.mode === 'multi_select' ? 'checkbox' : 'radio'}
            name="answer"
            checked={isChosen(one)}
            onChange={() => onPick(index)}
          />
          <span class="grow">
            <span class="user-text">{label}</span>
            {description && <span class="small soft user-text question-hint">{description}</span>}
          </span>
          {key && <kbd>{key}</kbd>}
        </label>
      ))}
    </fieldset>
  )
}

/** Shows the form. `onAnswered` is called when the interaction may have changed. */
export function AnswerForm({
  project,
  interaction,
  onAnswered,
}: {
  readonly project: string
  readonly interaction: Interaction
  readonly onAnswered: () => void
}) {
  const { id } = interaction
  const question = questionOf(interaction)
  const [stored, setStored] = useDraft(draftKey(id))
  const [fault, setFault] = useState<string>()
  const sending = useRef(false)
  const draft: Draft = readDraft(stored, question) ?? { value: initialOf(question), comment: '' }
  const change = (next: Partial<Draft>): void => {
    setFault(undefined)
    setStored(JSON.stringify({ ...draft, ...next }))
  }
  const choose = (index: number): void =>
    change({
      value: question.mode === 'confirm' ? index === 0 : pick(question, draft.value, index),
    })
  const input = {
    project,
    id,
    value: draft.value,
    ...(draft.comment.trim() !== '' && { comment: draft.comment.trim() }),
  }
  const send = async (): Promise<void> => {
    if (sending.current) return
    if (draft.value === undefined) return setFault(text.chooseFirst)
    sending.current = true
    try {
      await call('interaction.respond', input)
      setStored('')
      showDone(text.sent)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setFault([error.message, ...error.fields.map(({ message }) => message)].join(' '))
    } finally {
      sending.current = false
      onAnswered()
    }
  }
  useSendKey(() => void send())
  const commands = choicesOf(question).flatMap(({ key, label }, index): Command[] =>
    key === undefined
      ? []
      : [
          {
            id: `answer ${index}`,
            label: question.mode === 'confirm' ? label : text.option(index + 1, label),
            keys: key,
            icon: 'check',
            run: () => choose(index),
          },
        ],
  )
  useCommands(commands, [id, stored, commands.length])
  const common = {
    label: text.yourAnswer,
    value: typeof draft.value === 'string' ? draft.value : '',
    onValue: (value: string) => change({ value }),
    ...(question.placeholder !== undefined && { placeholder: question.placeholder }),
  }
  return (
    <form
      class="stack answer-form"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      {question.mode === 'input' ? (
        question.multiline ? (
          <TextArea {...common} rows={4} />
        ) : (
          <TextField {...common} />
        )
      ) : (
        <Choices question={question} value={draft.value} onPick={choose} />
      )}
      <TextArea
        label={text.comment}
        hint={text.commentHint}
        rows={1}
        maxLength={MAX_COMMENT_CHARACTERS}
        value={draft.comment}
        onValue={(comment) => change({ comment })}
      />
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      <div class="row">
        <Button kind="primary" icon="send" onClick={send} shortcut="Control+Enter">
          {text.send} <kbd class="wide-only">Ctrl ⏎</kbd>
        </Button>
        <CopyCall name="interaction.respond" input={input} />
        <span class="small soft">{stored === '' ? text.final : text.draftKept}</span>
      </div>
    </form>
  )
}
