import type { ComponentChildren, JSX } from 'preact'
import { Tabs } from '../../../../design/tabs.tsx'
import { currentUrl } from '../../../../router/router.ts'
import { hasEnded, type StepView } from '../data/fold.ts'
import { type LiveRun, type RunDetail, statusOfRun } from '../data/live-run.ts'
import { runText as text } from '../text.ts'
import { Details } from './details.tsx'
import { Events } from './events.tsx'
import { Jobs } from './jobs.tsx'
import { InputOutput } from './output.tsx'
import { RunGraph } from './run-graph.tsx'
import { StepPanel } from './step.tsx'
import { Timeline } from './timeline.tsx'

/**
 * The tabs of a run.
 * @param props.top the keys of the steps of the run itself; undefined if they are unknown.
 * @param props.workflow the name of the workflow.
 * @param props.stepActions returns what the panel of a step offers.
 */
export function RunTabs({
  project,
  run,
  detail,
  top,
  workflow,
  stepActions,
}: {
  readonly project: string
  readonly run: LiveRun
  readonly detail: RunDetail
  readonly top: ReadonlySet<string> | undefined
  readonly workflow: string | undefined
  readonly stepActions: (step: StepView) => ComponentChildren
}) {
  run.version.value
  const { id } = detail
  const status = statusOfRun(detail, run.fold)
  const ended = hasEnded(status)
  const from = Date.parse(detail.started_at ?? detail.created_at)
  const to = ended ? Date.parse(detail.completed_at ?? detail.updated_at) : undefined
  const chosen = currentUrl.value.query.get('step') ?? ''
  const besideStep = (content: JSX.Element) => (
    <div class={chosen === '' ? '' : 'beside'}>
      {content}
      {chosen !== '' && (
        <StepPanel project={project} run={run} stepKey={chosen} actions={stepActions} />
      )}
    </div>
  )
  return (
    <Tabs
      label={text.tabs}
      tabs={[
        {
          id: 'timeline',
          label: text.timeline,
          content: () => besideStep(<Timeline run={run} top={top} from={from} to={to} />),
        },
        {
          id: 'graph',
          label: text.graph,
          content: () =>
            besideStep(
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
            <Details project={project} detail={detail} run={run} workflow={workflow} />
          ),
        },
      ]}
    />
  )
}
