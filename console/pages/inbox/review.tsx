/** The form with which a reviewer accepts the proposed answer, or asks for changes. */
import { useRef, useState } from 'preact/hooks'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import { ApiError, call } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { TextArea } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { useDraft } from '../../shell/drafts.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { draftKey, useSendKey } from './answer.tsx'
import { inboxText as text } from './text.ts'

type Verdict = 'accept' | 'request_changes'
const VERDICTS = [
  { verdict: 'accept', label: text.accept, key: 'a', tone: 'good' },
  { verdict: 'request_changes', label: text.requestChanges, key: 'r', tone: 'bad' },
] as const

/** Shows the form. Asking for changes requires a comment. */
export function ReviewForm({
  project,
  interaction: { id },
  onReviewed,
}: {
  readonly project: string
  readonly interaction: Interaction
  readonly onReviewed: () => void
}) {
  const [comment, setComment] = useDraft(draftKey(`review.${id}`))
  const [verdict, setVerdict] = useState<Verdict>()
  const [fault, setFault] = useState<string>()
  const sending = useRef(false)
  const send = async (): Promise<void> => {
    if (sending.current) return
    if (verdict === undefined) return setFault(text.chooseFirst)
    if (verdict === 'request_changes' && comment.trim() === '') return setFault(text.sayWhat)
    sending.current = true
    try {
      const said = comment.trim() !== '' && { comment: comment.trim() }
      await call('interaction.review', { project, id, action: verdict, ...said })
      setComment('')
      showDone(verdict === 'accept' ? text.accepted : text.changesRequested)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setFault([error.message, ...error.fields.map(({ message }) => message)].join(' '))
    } finally {
      sending.current = false
      onReviewed()
    }
  }
  useSendKey(() => void send())
  useCommands(
    VERDICTS.map((one) => ({
      id: `review ${one.verdict}`,
      label: one.label,
      keys: one.key,
      icon: 'check',
      run: () => setVerdict(one.verdict),
    })),
    [id],
  )
  return (
    <form
      class="stack answer-form"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <fieldset class="answer-choices two">
        <legend class="label">{text.yourReview}</legend>
        {VERDICTS.map((one) => (
          <label key={one.verdict} class={`answer-choice ${one.tone}`}>
            <input
              type="radio"
              name="verdict"
              checked={verdict === one.verdict}
              onChange={() => setVerdict(one.verdict)}
            />
            <span class="grow">{one.label}</span>
            <kbd>{one.key}</kbd>
          </label>
        ))}
      </fieldset>
      <TextArea
        label={text.reviewComment}
        hint={text.reviewCommentHint}
        rows={2}
        maxLength={16_384}
        value={comment}
        onValue={setComment}
      />
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      <div class="row">
        <Button kind="primary" icon="send" onClick={send} shortcut="Control+Enter">
          {text.sendReview} <kbd class="wide-only">Ctrl ⏎</kbd>
        </Button>
      </div>
    </form>
  )
}
