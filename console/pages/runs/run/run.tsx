/** The page of one run: its progress, the reasons why it waits, and the actions on it. */

import { useMemo, useState } from 'preact/hooks'
import { useQuery } from '../../../api/query.ts'
import { Button } from '../../../design/button.tsx'
import { CopyCall } from '../../../design/copy.tsx'
import { Menu } from '../../../design/overlay.tsx'
import { Failure, Notice, Skeleton } from '../../../design/states.tsx'
import { designText } from '../../../design/text.ts'
import { Page, type PageProps } from '../../../shell/page.tsx'
import { may } from '../../../shell/session.ts'
import { runsText } from '../text.ts'
import { runActions, useRunCommands } from './actions/commands.ts'
import { OpenDialog, type RunDialog } from './actions/dialog.tsx'
import { actionText } from './actions/text.ts'
import { hasEnded, type StepView } from './data/fold.ts'
import { type LiveRun, type RunDetail, statusOfRun, useLiveRun } from './data/live-run.ts'
import { Facts, Failed } from './facts.tsx'
import { RunTabs } from './tabs/tabs.tsx'
import { runText as text } from './text.ts'
import { Waiting } from './waiting/waiting.tsx'

export default function RunPage({ params }: PageProps) {
  const { project = '', id = '' } = params
  const run = useLiveRun(project, id)
  const { data, error } = run.detail.state.value
  if (data) return <Loaded project={project} run={run} detail={data} />
  return (
    <Page title={id} crumbs={crumbsOf(project)} wide>
      {error ? <Failure error={error} retry={run.detail.reload} /> : <Skeleton lines={8} />}
    </Page>
  )
}

const crumbsOf = (project: string) => [
  { label: runsText.runs, href: `/p/${encodeURIComponent(project)}/runs` },
]
const labelsOf = (steps: readonly StepView[]) =>
  steps.map(({ key, name }) => ({
    key,
    label: name === undefined ? key : designText.detailed(name, key),
  }))

function Loaded({
  project,
  run,
  detail,
}: {
  readonly project: string
  readonly run: LiveRun
  readonly detail: RunDetail
}) {
  run.version.value
  const { id } = detail
  const { fold } = run
  const [dialog, setDialog] = useState<RunDialog>()
  const status = statusOfRun(detail, fold)
  const ended = hasEnded(status)
  const cancelling = 'cancel_requested' in detail && detail.cancel_requested
  const operates = may('runs.operate')
  const definition = 'loop_id' in detail ? '' : detail.definition_id
  const workflow = useQuery(
    'workflow.get',
    definition === '' ? undefined : { project, id: definition },
    { kinds: ['workflow'] },
  ).state.value.data
  const ofDefinition = 'loop_id' in detail ? detail.loop_name : workflow?.name
  const title = detail.name || ofDefinition || (definition === '' ? runsText.inline : id)
  const steps = [...fold.steps.values()]
  const ofLoop = 'loop_id' in detail
  const spec = ofLoop ? undefined : detail.spec
  const top = useMemo(
    () => spec && new Set(spec.steps.map((step, index) => step.id ?? String(index))),
    [JSON.stringify(spec?.steps)],
  )
  const reached = labelsOf(steps.filter(({ key }) => !top || top.has(key)))
  const suspended = labelsOf(steps.filter((step) => step.status === 'suspended'))
  const state = { id, status, ended, operates }
  const actions = runActions(state, setDialog)
  useRunCommands(state, actions, setDialog)
  return (
    <Page
      wide
      title={title}
      crumbs={crumbsOf(project)}
      actions={
        <>
          {operates && status === 'failed' && (
            <Button
              kind="primary"
              icon="reload"
              shortcut="r"
              onClick={() => setDialog({ kind: 'retry', from: '' })}
            >
              {actionText.retry}
            </Button>
          )}
          {operates && !ended && (
            <Button
              danger
              icon="stop"
              disabled={cancelling}
              onClick={() => setDialog({ kind: 'cancel' })}
            >
              {actionText.cancelShort}
            </Button>
          )}
          <CopyCall name="run.get" input={{ project, id }} />
          <Menu label={actionText.more} items={actions} />
        </>
      }
    >
      <Facts
        project={project}
        detail={detail}
        run={run}
        status={status}
        workflow={workflow?.name}
      />
      {cancelling && !ended && <Notice tone="warn">{text.cancelRequested}</Notice>}
      {!ended && (
        <Waiting
          project={project}
          run={run}
          status={status}
          waitingOn={detail.waiting_on}
          onSignal={(name) => setDialog({ kind: 'signal', name })}
          onResume={() => setDialog({ kind: 'resume' })}
        />
      )}
      {status === 'failed' && <Failed steps={steps} detail={detail} />}
      <RunTabs
        project={project}
        run={run}
        detail={detail}
        top={top}
        workflow={workflow?.name}
        stepActions={({ key }) =>
          operates &&
          status === 'failed' &&
          reached.some((one) => one.key === key) && (
            <Button onClick={() => setDialog({ kind: 'retry', from: key })}>
              {actionText.retryStep}
            </Button>
          )
        }
      />
      {dialog && (
        <OpenDialog
          key={dialog.kind}
          dialog={dialog}
          project={project}
          id={id}
          detail={detail}
          reached={reached}
          suspended={suspended}
          onClose={() => setDialog(undefined)}
          done={run.refresh}
        />
      )}
    </Page>
  )
}
