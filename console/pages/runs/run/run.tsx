/** The page of one run: its progress, the reasons why it waits, and the actions on it. */

import { useMemo, useState } from 'preact/hooks'
import { useQuery } from '../../../api/query.ts'
import { Button } from '../../../design/button.tsx'
import { CopyCall } from '../../../design/copy.tsx'
import { Menu, type MenuItem } from '../../../design/overlay.tsx'
import { Failure, Notice, Skeleton } from '../../../design/states.tsx'
import { Tabs } from '../../../design/tabs.tsx'
import { designText } from '../../../design/text.ts'
import { place, setQuery } from '../../../router/router.ts'
import { Page, type PageProps } from '../../../shell/page.tsx'
import { may } from '../../../shell/session.ts'
import { useCommands } from '../../../shell/shortcuts.ts'
import { runsText } from '../text.ts'
import {
  AgainDialog,
  CancelDialog,
  CompareDialog,
  ResumeDialog,
  RetryDialog,
  SignalDialog,
} from './actions/dialogs.tsx'
import { actionText } from './actions/text.ts'
import { hasEnded, type StepView } from './data/fold.ts'
import { type LiveRun, type RunDetail, statusOfRun, useLiveRun } from './data/live-run.ts'
import { Facts, Failed } from './facts.tsx'
import { Details } from './tabs/details.tsx'
import { Events } from './tabs/events.tsx'
import { Jobs } from './tabs/jobs.tsx'
import { InputOutput } from './tabs/output.tsx'
import { RunGraph } from './tabs/run-graph.tsx'
import { StepPanel } from './tabs/step.tsx'
import { Timeline } from './tabs/timeline.tsx'
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
const labelled = (steps: readonly StepView[]) =>
  steps.map(({ key, name }) => ({
    key,
    label: name === undefined ? key : designText.detailed(name, key),
  }))

type Dialog =
  | { readonly kind: 'cancel' | 'resume' | 'again' | 'compare' | 'complete' }
  | { readonly kind: 'retry'; readonly from: string }
  | { readonly kind: 'signal'; readonly name: string }

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
  const [dialog, setDialog] = useState<Dialog>()
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
  const reached = labelled(steps.filter(({ key }) => !top || top.has(key)))
  const suspended = labelled(steps.filter((step) => step.status === 'suspended'))
  const open = (next: Dialog) => () => setDialog(next)
  const actions: readonly (MenuItem & { readonly id: string; readonly keys?: string })[] = [
    ...(operates && status === 'suspended'
      ? [
          { id: 'resume', label: actionText.resume, onSelect: open({ kind: 'resume' }) },
          { id: 'complete', label: actionText.complete, onSelect: open({ kind: 'complete' }) },
        ]
      : []),
    ...(operates && !ended
      ? [
          {
            id: 'signal',
            label: actionText.signal,
            icon: 'send' as const,
            keys: 's',
            onSelect: open({ kind: 'signal', name: '' }),
          },
        ]
      : []),
    ...(operates
      ? [
          {
            id: 'again',
            label: actionText.again,
            icon: 'start' as const,
            onSelect: open({ kind: 'again' }),
          },
        ]
      : []),
    {
      id: 'compare',
      label: actionText.compare,
      icon: 'copy' as const,
      onSelect: open({ kind: 'compare' }),
    },
  ]
  useCommands(
    [
      ...actions.map(({ id: action, label, icon, keys, onSelect }) => ({
        id: `run-${action}`,
        label,
        ...(icon && { icon }),
        ...(keys && { keys }),
        run: () => void onSelect?.(),
      })),
      ...(operates && status === 'failed'
        ? [
            {
              id: 'run-retry',
              label: actionText.retry,
              keys: 'r',
              run: open({ kind: 'retry', from: '' }),
            },
          ]
        : []),
      ...(operates && !ended
        ? [{ id: 'run-cancel', label: actionText.cancel, run: open({ kind: 'cancel' }) }]
        : []),
      ...['', 'graph', 'events', 'output', 'jobs', 'details'].map((tab, index) => ({
        id: `run-tab-${tab}`,
        label: `${runsText.run}: ${tabNames[index]}`,
        keys: String(index + 1),
        run: () => setQuery({ tab }),
      })),
    ],
    [id, status, operates],
  )
  const { query } = place.value
  const chosen = query.get('step') ?? ''
  const from = Date.parse(detail.started_at ?? detail.created_at)
  const to = ended ? Date.parse(detail.completed_at ?? detail.updated_at) : undefined
  const close = (): void => setDialog(undefined)
  const shared = { project, id, onClose: close, done: run.refresh }
  const beside = (content: preact.JSX.Element) => (
    <div class={chosen === '' ? '' : 'beside'}>
      {content}
      {chosen !== '' && (
        <StepPanel
          project={project}
          run={run}
          stepKey={chosen}
          actions={({ key }) =>
            operates &&
            status === 'failed' &&
            reached.some((one) => one.key === key) && (
              <Button onClick={open({ kind: 'retry', from: key })}>{actionText.retryStep}</Button>
            )
          }
        />
      )}
    </div>
  )
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
              onClick={open({ kind: 'retry', from: '' })}
            >
              {actionText.retry}
            </Button>
          )}
          {operates && !ended && (
            <Button danger icon="stop" disabled={cancelling} onClick={open({ kind: 'cancel' })}>
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
          onResume={open({ kind: 'resume' })}
        />
      )}
      {status === 'failed' && <Failed steps={steps} detail={detail} />}
      <Tabs
        label={text.tabs}
        tabs={[
          {
            id: 'timeline',
            label: text.timeline,
            content: () => beside(<Timeline run={run} top={top} from={from} to={to} />),
          },
          {
            id: 'graph',
            label: text.graph,
            content: () =>
              beside(
                <RunGraph project={project} run={run} detail={detail} top={top} chosen={chosen} />,
              ),
          },
          { id: 'events', label: text.events, content: () => <Events run={run} /> },
          {
            id: 'output',
            label: text.output,
            content: () => <InputOutput run={run} detail={detail} status={status} />,
          },
          {
            id: 'jobs',
            label: text.jobs,
            content: () => <Jobs project={project} id={id} run={run} ended={ended} />,
          },
          {
            id: 'details',
            label: text.details,
            content: () => (
              <Details project={project} detail={detail} run={run} workflow={workflow?.name} />
            ),
          },
        ]}
      />
      {dialog?.kind === 'cancel' && <CancelDialog {...shared} />}
      {dialog?.kind === 'resume' && <ResumeDialog {...shared} />}
      {dialog?.kind === 'again' && <AgainDialog {...shared} detail={detail} />}
      {dialog?.kind === 'compare' && <CompareDialog {...shared} />}
      {dialog?.kind === 'complete' && <SignalDialog {...shared} name="" steps={suspended} />}
      {dialog?.kind === 'signal' && <SignalDialog {...shared} name={dialog.name} />}
      {dialog?.kind === 'retry' && (
        <RetryDialog {...shared} detail={detail} from={dialog.from} steps={reached} />
      )}
    </Page>
  )
}

const tabNames = [text.timeline, text.graph, text.events, text.output, text.jobs, text.details]
