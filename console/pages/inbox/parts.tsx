/** Read-only parts of a question: its deadline, values, origin and history. */
import type { ComponentChildren } from 'preact'
import { questionOf } from '../../../protocol/interactions/question.ts'
import { reviewersOf, roundOf } from '../../../protocol/interactions/resolve.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import { CopyButton } from '../../design/copy.tsx'
import { Badge, type Tone } from '../../design/states.tsx'
import { now, Time } from '../../design/time.tsx'
import { Tree } from '../../design/tree.tsx'
import { Who } from '../../people/who.tsx'
import { formatDuration, formatExact } from '../../text/format.ts'
import { answersOf, answerText, isOpen, progressOf, safeUrl, sessionOf } from './asked.ts'
import { inboxText as text } from './text.ts'

interface Props {
  readonly project: string
  readonly interaction: Interaction
}

/** Remaining time in milliseconds below which a deadline is highlighted. */
const NEAR_DEADLINE_MS = 3_600_000
/** Shows how much time is left to answer a question. */
export function Deadline({ at }: { readonly at: string }) {
  const left = Date.parse(at) - now.value
  return (
    <span
      class={`badge ${left < NEAR_DEADLINE_MS ? 'warn' : 'neutral'}`}
      title={formatExact(Date.parse(at))}
    >
      {left > 0 ? text.expiresIn(formatDuration(Math.ceil(left / 1000) * 1000)) : text.expiredNow}
    </span>
  )
}

const statuses: Readonly<Record<Interaction['status'], readonly [string, Tone]>> = {
  pending: [text.pending, 'accent'],
  in_review: [text.in_review, 'info'],
  completed: [text.completed, 'good'],
  expired: [text.statusExpired, 'warn'],
  cancelled: [text.cancelled, 'neutral'],
}
export const StatusBadge = ({ status }: Pick<Interaction, 'status'>) => (
  <Badge tone={statuses[status][1]}>{statuses[status][0]}</Badge>
)

/** Shows the value of an answer as text, or as a tree if it has no text form. */
export function Answered({
  interaction,
  value,
}: {
  readonly interaction: Interaction
  readonly value: unknown
}) {
  const words = answerText(questionOf(interaction), value, text)
  return words === undefined ? <Tree value={value} /> : <p class="answer-text user-text">{words}</p>
}

/** Lists the answers with their authors and comments. */
export function Answers({ project, interaction }: Props) {
  const answers = answersOf(interaction)
  const rounds = roundOf(interaction) > 1
  return (
    <ul class="stack">
      {answers.map((one) => (
        <li key={one.id} class="question-answer">
          <div class="row small">
            <strong>
              <Who project={project} id={one.responder_user_id} />
            </strong>
            <span class="soft">
              <Time at={one.responded_at} relative />
            </span>
            {rounds && <Badge>{text.round(one.attempt ?? 1)}</Badge>}
          </div>
          <Answered interaction={interaction} value={one.value} />
          {one.comment && <p class="soft user-text question-lines">{one.comment}</p>}
        </li>
      ))}
    </ul>
  )
}

const steps: Readonly<Record<Interaction['lifecycle'][number]['action'], string>> = {
  created: text.created,
  submitted_for_review: text.submitted_for_review,
  accepted: text.lifecycle_accepted,
  changes_requested: text.changes_requested,
  resolved: text.resolved,
  cancelled: text.cancelled,
  expired: text.statusExpired,
}
/** Lists the lifecycle steps of a question, oldest first. */
export const History = ({ project, interaction }: Props) => (
  <ol class="question-history">
    {interaction.lifecycle.map((one, index) => (
      <li key={index}>
        <span>{steps[one.action]}</span>{' '}
        <span class="soft small">
          {one.actor_id && (
            <>
              <Who project={project} id={one.actor_id} />
              {' · '}
            </>
          )}
          <Time at={one.at} />
        </span>
        {one.comment && <p class="soft user-text question-lines">{one.comment}</p>}
      </li>
    ))}
  </ol>
)

const Fact = ({
  name,
  children,
}: {
  readonly name: string
  readonly children: ComponentChildren
}) => (
  <>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </>
)
type Ref = NonNullable<Interaction['subject']>
function Reference({ of }: { readonly of: Ref }) {
  const { url, label, entity_type, entity_id, relation } = of
  const name = label ?? url ?? `${entity_type ?? ''} ${entity_id ?? ''}`.trim()
  const address = safeUrl(url)
  return (
    <span class="user-text">
      {relation && <span class="soft">{relation}: </span>}
      {address ? (
        <a href={address} rel="noreferrer noopener" target="_blank">
          {name}
        </a>
      ) : (
        name
      )}
    </span>
  )
}
const Everybody = ({
  project,
  ids,
}: {
  readonly project: string
  readonly ids: readonly string[]
}) => (
  <ul class="question-people">
    {ids.map((id) => (
      <li key={id}>
        <Who project={project} id={id} />
      </li>
    ))}
  </ul>
)

function Rule({ interaction }: { readonly interaction: Interaction }) {
  const { type, threshold = 1 } = interaction.resolution_policy
  const { given, needed } = progressOf(interaction)
  const rule = { any_of: text.ruleAny, all_of: text.ruleAll, quorum: text.ruleQuorum(threshold) }
  return (
    <>
      {rule[type]}
      {needed > 1 && isOpen(interaction) && (
        <span class="soft"> · {text.progress(given, needed)}</span>
      )}
    </>
  )
}

/** Shows who asked, the related records, and who may answer. */
export function Facts({ project, interaction }: Props) {
  const { created_by, created_at, run_id, signal_name, target_user_ids } = interaction
  const base = `/p/${encodeURIComponent(project)}`
  const session = sessionOf(interaction)
  const reviewers = reviewersOf(interaction)
  const { subject, references = [], tags = {}, expires_at, id } = interaction
  return (
    <dl class="facts">
      <Fact name={text.asked}>
        <Time at={created_at} relative />
        {created_by && (
          <>
            {' · '}
            <Who project={project} id={created_by} />
          </>
        )}
      </Fact>
      {run_id && (
        <Fact name={text.run}>
          <a class="mono" href={`${base}/runs/${encodeURIComponent(run_id)}`}>
            {run_id}
          </a>
        </Fact>
      )}
      {signal_name && (
        <Fact name={text.step}>
          <span class="mono user-text">{signal_name}</span>
        </Fact>
      )}
      {session && (
        <Fact name={text.session}>
          <a class="mono" href={`${base}/sessions/${encodeURIComponent(session)}`}>
            {session}
          </a>
        </Fact>
      )}
      <Fact name={text.who}>
        <Everybody project={project} ids={target_user_ids} />
      </Fact>
      <Fact name={text.rule}>
        <Rule interaction={interaction} />
      </Fact>
      {reviewers.length > 0 && (
        <Fact name={text.reviewers}>
          <Everybody project={project} ids={reviewers} />
        </Fact>
      )}
      {expires_at && (
        <Fact name={text.deadline}>
          <Time at={expires_at} />
        </Fact>
      )}
      {subject && (
        <Fact name={text.subject}>
          <Reference of={subject} />
        </Fact>
      )}
      {references.length > 0 && (
        <Fact name={text.references}>
          <ul>
            {references.map((one, index) => (
              <li key={index}>
                <Reference of={one} />
              </li>
            ))}
          </ul>
        </Fact>
      )}
      {Object.keys(tags).length > 0 && (
        <Fact name={text.tags}>
          <span class="row">
            {Object.entries(tags).map(([name, value]) => (
              <span class="badge user-text" key={name}>
                {name}: <span class="user-text">{value}</span>
              </span>
            ))}
          </span>
        </Fact>
      )}
      <Fact name={text.id}>
        <span class="question-id">
          <span class="mono clip">{id}</span>
          <CopyButton value={id} />
        </span>
      </Fact>
    </dl>
  )
}
