/** One question: its content, the form for the answer, and the answers. */
import { useEffect, useRef } from 'preact/hooks'
import { questionOf } from '../../../protocol/interactions/question.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { Notice, Show } from '../../design/states.tsx'
import { Tree } from '../../design/tree.tsx'
import { Markdown } from '../../markdown/markdown.tsx'
import { usePeople } from '../../people/people.ts'
import { useDraft } from '../../shell/drafts.ts'
import { QuestionActions } from './actions.tsx'
import { AnswerForm, draftKey } from './answer.tsx'
import { isOpen, partOf, readDraft } from './asked.ts'
import { Answered, Answers, Deadline, Facts, History, StatusBadge } from './parts.tsx'
import { ReviewForm } from './review.tsx'
import { inboxText as text } from './text.ts'

interface Props {
  readonly project: string
  readonly interaction: Interaction
}

/** Warns that the question was answered by somebody else or closed, and shows the unsent draft. */
function Lost({ project, interaction }: Props) {
  const [stored, setStored] = useDraft(draftKey(interaction.id))
  const { nameOf } = usePeople(project)
  const question = questionOf(interaction)
  const draft = readDraft(stored, question)
  if (!draft) return null
  const { responder } = interaction
  const name = responder && (nameOf(responder.user_id) ?? responder.user_id)
  const isAnswered = interaction.status === 'completed'
  const changed = isAnswered ? text.wasChanged : text.wasClosed
  return (
    <Notice tone="warn">
      <div class="stack close">
        <strong class="user-text">{isAnswered && name ? text.fasterBy(name) : changed}</strong>
        <span>{isAnswered ? text.fasterHint : text.closedHint}</span>
        <div>
          <div class="small">{text.unsent}</div>
          <Answered interaction={interaction} value={draft.value} />
          {draft.comment !== '' && <p class="user-text question-lines">{draft.comment}</p>}
        </div>
        <div>
          <Button onClick={() => setStored('')}>{text.discard}</Button>
        </div>
      </div>
    </Notice>
  )
}

/** Shows the form for the person's answer or review, or why the person cannot answer or review. */
function Action({ project, interaction, reload }: Props & { readonly reload: () => void }) {
  const { me, mine, known } = usePeople(project)
  const part = partOf(interaction, me, mine)
  if (part === 'answer')
    return (
      <AnswerForm
        key={interaction.review_round ?? 1}
        project={project}
        interaction={interaction}
        onAnswered={reload}
      />
    )
  if (part === 'review')
    return <ReviewForm project={project} interaction={interaction} onReviewed={reload} />
  if (part === 'answered') return <Notice tone="good">{text.answeredWait}</Notice>
  return isOpen(interaction) && known ? <p class="soft">{text.notAsked}</p> : null
}

function Outcome({ interaction }: { readonly interaction: Interaction }) {
  const { status, outcome, cancel_reason } = interaction
  if (status === 'completed')
    return (
      <section class="stack close question-outcome">
        <h3>{text.outcome}</h3>
        <Answered interaction={interaction} value={outcome} />
      </section>
    )
  if (status === 'cancelled' && cancel_reason)
    return (
      <section class="stack close question-outcome">
        <h3>{text.cancelReason}</h3>
        <p class="user-text question-lines">{cancel_reason}</p>
      </section>
    )
  return null
}

function Values({ interaction }: { readonly interaction: Interaction }) {
  const { context, properties } = interaction
  return (
    <>
      {context && Object.keys(context).length > 0 && (
        <section class="stack close">
          <h3>{text.context}</h3>
          <Tree value={context} open={2} />
        </section>
      )}
      {properties && Object.keys(properties).length > 0 && (
        <section class="stack close">
          <h3>{text.properties}</h3>
          <Tree value={properties} />
        </section>
      )}
    </>
  )
}

/**
 * Shows a question, updated live.
 * @param props.onBack returns to the list; called when Escape is pressed, and by the back button on
 * narrow screens.
 */
export function Detail({
  project,
  id,
  onBack,
}: {
  readonly project: string
  readonly id: string
  readonly onBack: () => void
}) {
  const { state, reload } = useQuery(
    'interaction.get',
    { project, id },
    { kinds: ['interaction'], id },
  )
  const top = useRef<HTMLElement>(null)
  useEffect(() => {
    top.current?.scrollTo?.(0, 0)
  }, [id])
  return (
    <section
      ref={top}
      class="inbox-detail"
      aria-label={text.question}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || event.defaultPrevented) return
        event.preventDefault()
        onBack()
      }}
    >
      <div class="narrow-only">
        <Button kind="quiet" onClick={onBack}>
          ← {text.back}
        </Button>
      </div>
      <Show of={state.value} retry={reload} lines={8}>
        {(interaction) => (
          <div class="stack question-sheet">
            <header class="stack close">
              <div class="row apart">
                <div class="row">
                  <StatusBadge status={interaction.status} />
                  <span class="soft small">{text[interaction.kind]}</span>
                  {isOpen(interaction) && interaction.expires_at && (
                    <Deadline at={interaction.expires_at} />
                  )}
                </div>
                <div class="row">
                  <CopyCall name="interaction.get" input={{ project, id }} />
                  <QuestionActions
                    project={project}
                    interaction={interaction}
                    onChanged={reload}
                    onRemoved={onBack}
                  />
                </div>
              </div>
              <h2 tabIndex={-1} class="question-title user-text">
                {interaction.title}
              </h2>
            </header>
            {interaction.description && <Markdown text={interaction.description} />}
            <Values interaction={interaction} />
            {interaction.status === 'pending' && interaction.review_feedback && (
              <Notice tone="warn">
                <strong>{text.feedback}</strong>
                <p class="user-text question-lines">{interaction.review_feedback}</p>
              </Notice>
            )}
            {!isOpen(interaction) && <Lost project={project} interaction={interaction} />}
            <Outcome interaction={interaction} />
            {interaction.responses.length > 0 && (
              <section class="stack close">
                <h3>{interaction.status === 'in_review' ? text.reviewOf : text.answers}</h3>
                <Answers project={project} interaction={interaction} />
              </section>
            )}
            <Action project={project} interaction={interaction} reload={reload} />
            <Facts project={project} interaction={interaction} />
            <details>
              <summary>{text.history}</summary>
              <History project={project} interaction={interaction} />
            </details>
          </div>
        )}
      </Show>
    </section>
  )
}
