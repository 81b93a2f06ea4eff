/** The main facts of a run below its title, and the reason for its failure. */

import type { ComponentChildren } from 'preact'
import { isolate } from '../../../../client/isolate.ts'
import { Button } from '../../../design/button.tsx'
import { CopyButton } from '../../../design/copy.tsx'
import { Notice } from '../../../design/states.tsx'
import { Duration, Time } from '../../../design/time.tsx'
import { Who } from '../../../people/who.tsx'
import { setQuery } from '../../../router/router.ts'
import { formatNumber } from '../../../text/format.ts'
import { StatusBadge } from '../status.tsx'
import { runsText } from '../text.ts'
import { hasEnded, type StepView } from './data/fold.ts'
import type { LiveRun, RunDetail } from './data/live-run.ts'
import { runText as text } from './text.ts'

const Fact = ({
  name,
  children,
}: {
  readonly name: string
  readonly children: ComponentChildren
}) => (
  <div>
    <dt class="small soft">{name}</dt>
    <dd>{children}</dd>
  </div>
)

/** Shows status, definition, times, cost and progress of a run. */
export function Facts({
  project,
  detail,
  run,
  status,
  workflow,
}: {
  readonly project: string
  readonly detail: RunDetail
  readonly run: LiveRun
  readonly status: string
  /** Name of the workflow, if it is known. */
  readonly workflow: string | undefined
}) {
  const { id, created_at, started_at, completed_at } = detail
  const steps = [...run.fold.steps.values()]
  const done = steps.filter((step) => hasEnded(step.status)).length
  const spent = run.fold.credits ?? ('credit_spent' in detail ? detail.credit_spent : undefined)
  return (
    <dl class="run-facts">
      <div>
        <dt class="unseen">{text.status}</dt>
        <dd aria-live="polite">
          <StatusBadge status={status} />
        </dd>
      </div>
      <Fact name={'loop_id' in detail ? text.loop : text.workflow}>
        <Definition project={project} detail={detail} name={workflow} />
      </Fact>
      <Fact name={started_at === undefined ? text.created : text.started}>
        <Time at={started_at ?? created_at} />
      </Fact>
      <Fact name={text.duration}>
        <Duration
          from={started_at ?? created_at}
          to={hasEnded(status) ? completed_at : undefined}
        />
      </Fact>
      {steps.length > 0 && <Fact name={text.steps}>{text.stepCounts(done, steps.length)}</Fact>}
      {spent !== undefined && spent > 0 && (
        <Fact name={text.cost}>
          <span title={formatNumber(spent)}>{text.credits(spent)}</span>
        </Fact>
      )}
      {'queue' in detail && (
        <Fact name={text.queue}>
          <span class="user-text">{detail.queue}</span>
        </Fact>
      )}
      <Starter project={project} detail={detail} />
      <Fact name={text.id}>
        <span class="mono small">{id}</span> <CopyButton value={id} label={text.copyId} />
      </Fact>
    </dl>
  )
}

function Definition({
  project,
  detail,
  name,
}: {
  readonly project: string
  readonly detail: RunDetail
  readonly name: string | undefined
}) {
  const at = `/p/${encodeURIComponent(project)}`
  if ('loop_id' in detail)
    return (
      <>
        <a class="user-text" href={`${at}/loops/${detail.loop_id}`}>
          {detail.loop_name ?? detail.loop_id}
        </a>{' '}
        <span class="soft">{runsText.version(detail.loop_version)}</span>
      </>
    )
  const { definition_id: id } = detail
  if (id === '') return <span class="soft">{runsText.inline}</span>
  return (
    <>
      <a class="user-text" href={`${at}/workflows/${id}`}>
        {name ?? id}
      </a>{' '}
      <span class="soft">{runsText.version(detail.definition_version)}</span>
    </>
  )
}

function Starter({ project, detail }: { readonly project: string; readonly detail: RunDetail }) {
  const id = 'initiated_by' in detail ? detail.initiated_by : undefined
  const source = 'source' in detail ? detail.source : undefined
  const origin = [source?.type, source?.label && isolate(source.label)].filter(Boolean).join(' · ')
  return id === undefined && origin === '' ? null : (
    <Fact name={text.initiatedBy}>
      {id === undefined ? (
        <span class="user-text">{origin}</span>
      ) : (
        <Who project={project} id={id} />
      )}
    </Fact>
  )
}

/** Shows why a run failed, with a link to the failed step. */
export function Failed({
  steps,
  detail,
}: {
  readonly steps: readonly StepView[]
  readonly detail: RunDetail
}) {
  const failed = steps.find(({ status }) => status === 'failed')
  const { error_message } = detail
  const reason = 'stop_reason' in detail ? detail.stop_reason : undefined
  return (
    <Notice tone="bad">
      <div class="row apart">
        <div class="grow">
          <strong>
            {failed ? (
              <>
                {text.failedIn} <span class="user-text">{failed.name ?? failed.key}</span>.
              </>
            ) : (
              text.failed
            )}
          </strong>
          {error_message !== undefined && <div class="user-text cut">{error_message}</div>}
          {reason !== undefined && <div class="small">{text.stopReason(reason)}</div>}
        </div>
        {failed && (
          <Button onClick={() => setQuery({ tab: '', step: failed.key }, { push: true })}>
            {text.jumpToStep}
          </Button>
        )}
      </div>
    </Notice>
  )
}
