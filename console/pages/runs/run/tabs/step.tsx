/** One step of a run: its state, its inputs and result, and related records. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Button, IconButton } from '../../../../design/button.tsx'
import { CopyButton } from '../../../../design/copy.tsx'
import { Notice } from '../../../../design/states.tsx'
import { Duration, Time } from '../../../../design/time.tsx'
import { Tree } from '../../../../design/tree.tsx'
import { setQuery } from '../../../../router/router.ts'
import { useCommands } from '../../../../shell/shortcuts.ts'
import { formatDuration } from '../../../../text/format.ts'
import { focusPart } from '../../focus.ts'
import { StatusBadge } from '../../status.tsx'
import { pausedMs, type StepView } from '../data/fold.ts'
import type { LiveRun } from '../data/live-run.ts'
import { runText as text } from '../text.ts'

/** Shows the step with the key `stepKey`. `actions` returns buttons for it. */
export function StepPanel({
  project,
  run,
  stepKey,
  actions,
}: {
  readonly project: string
  readonly run: LiveRun
  readonly stepKey: string
  readonly actions: (step: StepView) => ComponentChildren
}) {
  run.version.value
  const heading = useRef<HTMLHeadingElement>(null)
  const step = run.fold.steps.get(stepKey)
  const close = (): void => {
    setQuery({ step: '' })
    focusPart('.waterfall, .graph-frame')
  }
  useCommands(
    [{ id: 'run-close-step', label: text.closeStep, keys: 'Escape', run: close }],
    [stepKey],
  )
  useEffect(() => {
    heading.current?.scrollIntoView({ block: 'nearest' })
  }, [stepKey])
  return (
    <section class="card step-panel" aria-labelledby="step-title">
      <header>
        <h2 id="step-title" ref={heading} class="user-text grow">
          {step?.name ?? stepKey}
        </h2>
        {step && <StatusBadge status={step.status} />}
        <IconButton icon="close" label={text.closeStep} onClick={close} />
      </header>
      <div class="body stack">
        {step ? (
          <Content project={project} step={step} actions={actions(step)} />
        ) : (
          <p class="soft">{text.unknownStep}</p>
        )}
      </div>
    </section>
  )
}

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

function Content({
  project,
  step,
  actions,
}: {
  readonly project: string
  readonly step: StepView
  readonly actions: ComponentChildren
}) {
  const at = `/p/${encodeURIComponent(project)}`
  const { key, kind, attempt, from, to, error, errorType, inputs, result, attempts } = step
  const paused = pausedMs(step)
  const { jobId, sessionId, childRunId, interactionId, agentId, verdict, waitingOn } = step
  const link = (href: string, id: string) => (
    <a class="mono user-text" href={`${at}/${href}`}>
      {id}
    </a>
  )
  return (
    <>
      {error !== undefined && (
        <Notice tone="bad">
          <div class="user-text">{error}</div>
          {errorType !== undefined && <div class="small mono user-text">{errorType}</div>}
        </Notice>
      )}
      {waitingOn && to === undefined && (
        <Notice tone="warn">
          <span class="user-text">{waitingOn.reason}</span>
        </Notice>
      )}
      <dl class="facts">
        <Fact name={text.step}>
          <span class="mono user-text">{key}</span> <CopyButton value={key} />
        </Fact>
        <Fact name={text.kind}>{kind.replaceAll('_', ' ')}</Fact>
        {from !== undefined && (
          <>
            <Fact name={text.started}>
              <Time at={from} />
            </Fact>
            <Fact name={text.duration}>
              <Duration from={from + paused} to={to} />
              {paused > 0 && (
                <span class="soft"> ({text.withoutPauses(formatDuration(paused))})</span>
              )}
            </Fact>
          </>
        )}
        {attempt > 1 && <Fact name={text.attempt}>{attempt}</Fact>}
        {verdict !== undefined && <Fact name={text.verdict}>{verdict}</Fact>}
        {jobId !== undefined && (
          <Fact name={text.job}>
            <span class="mono">{jobId}</span>
          </Fact>
        )}
        {interactionId !== undefined && (
          <Fact name={text.question}>
            {link(`inbox?id=${encodeURIComponent(interactionId)}`, interactionId)}
          </Fact>
        )}
        {childRunId !== undefined && (
          <Fact name={text.childRun}>
            {link(`runs/${encodeURIComponent(childRunId)}`, childRunId)}
          </Fact>
        )}
        {sessionId !== undefined && (
          <Fact name={text.session}>
            {link(`sessions/${encodeURIComponent(sessionId)}`, sessionId)}
          </Fact>
        )}
        {agentId !== undefined && (
          <Fact name={text.agent}>{link(`agents/${encodeURIComponent(agentId)}`, agentId)}</Fact>
        )}
      </dl>
      <div class="row">
        {actions}
        <Button
          kind="quiet"
          onClick={() => setQuery({ tab: 'events', only: key, step: '' }, { push: true })}
        >
          {text.showEvents}
        </Button>
        {(kind === 'action' || jobId !== undefined) && (
          <Button
            kind="quiet"
            onClick={() => setQuery({ tab: 'jobs', only: key, step: '' }, { push: true })}
          >
            {text.showLogs}
          </Button>
        )}
      </div>
      {attempts.length > 1 && (
        <section class="stack close">
          <h3>{text.attempts}</h3>
          <ol class="stack close">
            {attempts.map((one) => (
              <li key={one.from}>
                {text.attemptLabel(one.number)}: <Time at={one.from} />,{' '}
                <Duration from={one.from} to={one.to} />
                {one.error !== undefined && <span class="fault-text user-text"> {one.error}</span>}
              </li>
            ))}
          </ol>
        </section>
      )}
      <section class="stack close">
        <h3>{text.inputs}</h3>
        {inputs === undefined ? (
          <p class="soft">{text.noInputs}</p>
        ) : (
          <Tree value={inputs} open={2} />
        )}
      </section>
      <section class="stack close">
        <h3>{text.result}</h3>
        {result === undefined ? (
          <p class="soft">{text.noResult}</p>
        ) : (
          <Tree value={result} open={2} />
        )}
      </section>
    </>
  )
}
