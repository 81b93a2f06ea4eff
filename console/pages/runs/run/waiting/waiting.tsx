/** A notice at the top of a run: why it makes no progress, and what a person can do about it. */
import { useState } from 'preact/hooks'
import type { WaitingOn } from '../../../../../protocol/runs/waiting.ts'
import { useQuery } from '../../../../api/query.ts'
import { Button, LinkButton } from '../../../../design/button.tsx'
import { Notice } from '../../../../design/states.tsx'
import { Duration, Time } from '../../../../design/time.tsx'
import { may } from '../../../../shell/session.ts'
import type { LiveRun } from '../data/live-run.ts'
import { waitingText as text } from './text.ts'
import { type NextStep, type Reason, reasonsOf } from './waiting.ts'

/** Number of reasons that are shown initially. */
const INITIAL_REASONS = 3

/** Shows the reasons why a run waits, or nothing if it does not wait. */
export function Waiting({
  project,
  run,
  status,
  waitingOn,
  onSignal,
  onResume,
}: {
  readonly project: string
  readonly run: LiveRun
  readonly status: string
  readonly waitingOn: WaitingOn | undefined
  readonly onSignal: (name: string) => void
  readonly onResume: () => void
}) {
  const [all, setAll] = useState(false)
  run.version.value
  const asked = [...run.fold.steps.values()].some(
    ({ interactionId }) => interactionId !== undefined,
  )
  const { data } = useQuery('principal.list', asked ? { project, limit: 200 } : undefined).state
    .value
  const nameOf = (id: string): string => data?.items.find((one) => one.id === id)?.name ?? id
  const reasons = reasonsOf({ status, waitingOn }, run.fold.steps.values(), nameOf)
  if (reasons.length === 0) return null
  const shown = all ? reasons : reasons.slice(0, INITIAL_REASONS)
  return (
    <Notice tone="warn">
      <h2 class="unseen">{text.title}</h2>
      <ul class="stack close">
        {shown.map((reason) => (
          <li key={reason.sentence} class="row apart">
            <span class="grow">
              <Sentence reason={reason} />
            </span>
            {reason.next && (
              <Next project={project} next={reason.next} onSignal={onSignal} onResume={onResume} />
            )}
          </li>
        ))}
      </ul>
      {shown.length < reasons.length && (
        <Button kind="quiet" onClick={() => setAll(true)}>
          {text.more(reasons.length - shown.length)}
        </Button>
      )}
    </Notice>
  )
}

const Sentence = ({ reason: { sentence, detail, since, until } }: { readonly reason: Reason }) => (
  <>
    <span class="user-text">{sentence}</span>
    {until !== undefined ? (
      <>
        {' '}
        {text.until} <Time at={until} />
      </>
    ) : (
      since !== undefined && (
        <>
          {' '}
          {text.since} <Duration from={since} />
        </>
      )
    )}
    .{detail !== undefined && <div class="small user-text">{detail}</div>}
  </>
)

function Next({
  project,
  next,
  onSignal,
  onResume,
}: {
  readonly project: string
  readonly next: NextStep
  readonly onSignal: (name: string) => void
  readonly onResume: () => void
}) {
  const at = `/p/${encodeURIComponent(project)}`
  switch (next.kind) {
    case 'answer':
      return (
        <LinkButton href={`${at}/inbox?id=${encodeURIComponent(next.interactionId)}`} icon="inbox">
          {text.answer}
        </LinkButton>
      )
    case 'signal':
      return may('runs.operate') ? (
        <Button icon="send" onClick={() => onSignal(next.name)}>
          {text.sendSignal}
        </Button>
      ) : null
    case 'event':
      return <LinkButton href={`${at}/events`}>{text.publish}</LinkButton>
    case 'workers':
      return (
        <LinkButton href={`${at}/workers`} icon="workers">
          {text.workers}
        </LinkButton>
      )
    case 'run':
      return (
        <LinkButton href={`${at}/runs/${encodeURIComponent(next.runId)}`} icon="runs">
          {text.openRun}
        </LinkButton>
      )
    case 'session':
      return (
        <LinkButton href={`${at}/sessions/${encodeURIComponent(next.sessionId)}`} icon="sessions">
          {text.openSession}
        </LinkButton>
      )
    case 'resume':
      return may('runs.operate') ? <Button onClick={onResume}>{text.resume}</Button> : null
  }
}
