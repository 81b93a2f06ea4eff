/** The home page of a project: running, waiting and failed work, throughput and latency. */
import { useMemo } from 'preact/hooks'
import type { CallReply } from '../../api/client.ts'
import { useList, useQuery } from '../../api/query.ts'
import { Chart } from '../../chart/chart.tsx'
import { LinkButton } from '../../design/button.tsx'
import { Code } from '../../design/copy.tsx'
import { SelectField } from '../../design/field.tsx'
import { Empty, Show } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { formatDuration, formatNumber } from '../../text/format.ts'
import { StatusBadge } from '../runs/status.tsx'
import { overviewInput, recentInput } from './first.ts'
import { homeText as text } from './text.ts'

type Overview = CallReply<'overview.get'>

const PERIODS = [
  { value: '60', label: text.lastHour },
  { value: '360', label: text.last6Hours },
  { value: '1440', label: text.lastDay },
  { value: '10080', label: text.lastWeek },
]

/** A labelled number that links to the records it counts. */
function Figure({
  label,
  value,
  hint,
  href,
  tone,
}: {
  readonly label: string
  readonly value: string
  readonly hint?: string
  readonly href: string
  readonly tone?: 'bad' | 'accent'
}) {
  return (
    <a class={`figure ${tone ?? ''}`} href={href}>
      <span class="soft">{label}</span>
      <strong>{value}</strong>
      {hint && <span class="small soft">{hint}</span>}
    </a>
  )
}

function Figures({ of, base }: { readonly of: Overview; readonly base: string }) {
  const { runs, interactions, period, period_start } = of
  const inPeriod = `&ended_after=${encodeURIComponent(period_start)}`
  const many = interactions.at_least ? '+' : ''
  return (
    <div class="figures">
      <Figure
        label={text.running}
        value={formatNumber(runs.running)}
        href={`${base}/runs?status=running`}
      />
      <Figure
        label={text.suspended}
        value={formatNumber(runs.suspended)}
        hint={text.suspendedHint}
        href={`${base}/runs?status=suspended`}
      />
      <Figure
        label={text.forMe}
        value={`${formatNumber(interactions.for_me)}${many}`}
        hint={text.forMeHint(interactions.waiting)}
        href={`${base}/inbox`}
        {...(interactions.for_me > 0 && { tone: 'accent' as const })}
      />
      <Figure
        label={text.completed}
        value={formatNumber(period.completed)}
        href={`${base}/runs?status=completed${inPeriod}`}
      />
      <Figure
        label={text.failed}
        value={formatNumber(period.failed)}
        href={`${base}/runs?status=failed${inPeriod}`}
        {...(period.failed > 0 && { tone: 'bad' as const })}
      />
    </div>
  )
}

function Charts({ of: { series } }: { readonly of: Overview }) {
  const lines = useMemo(() => {
    const values = <K extends keyof Overview['series'][number]>(name: K) =>
      series.map((one) => (typeof one[name] === 'number' ? (one[name] as number) : null))
    return {
      times: series.map(({ at }) => Date.parse(at)),
      flow: [
        { label: text.started, colour: '--info', values: values('started') },
        { label: text.completed, colour: '--good', values: values('completed') },
        { label: text.failed, colour: '--bad', values: values('failed') },
      ],
      latency: [
        { label: text.half, colour: '--accent', values: values('p50_ms') },
        { label: text.most, colour: '--warn', values: values('p95_ms') },
      ],
    }
  }, [series])
  return (
    <div class="pair">
      <section class="card">
        <div class="body">
          <Chart
            title={text.throughput}
            times={lines.times}
            series={lines.flow}
            format={formatNumber}
          />
        </div>
      </section>
      <section class="card">
        <div class="body">
          <Chart
            title={text.latency}
            times={lines.times}
            series={lines.latency}
            format={formatDuration}
          />
        </div>
      </section>
    </div>
  )
}

function Failures({ of, base }: { readonly of: Overview; readonly base: string }) {
  return (
    <section class="card">
      <header>
        <h2>{text.failures}</h2>
      </header>
      {of.failures.length === 0 ? (
        <p class="body soft">{text.noFailures}</p>
      ) : (
        <div class="table-scroll">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{text.failure}</th>
                <th scope="col">{text.step}</th>
                <th scope="col" class="number">
                  {text.count}
                </th>
                <th scope="col">{text.last}</th>
              </tr>
            </thead>
            <tbody>
              {of.failures.map((one) => (
                <tr key={`${one.error_type} ${one.step_key} ${one.definition_id} ${one.loop_id}`}>
                  <td>
                    <a class="user-text" href={`${base}/runs/${one.last_run_id}`}>
                      {one.error_type}
                    </a>
                  </td>
                  <td class="user-text">{one.step_key ?? '–'}</td>
                  <td class="number">{formatNumber(one.count)}</td>
                  <td>
                    <Time at={one.last_failed_at} relative />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

function Recent({ project, base }: { readonly project: string; readonly base: string }) {
  const { state } = useList('run.list', recentInput(project), { kinds: ['run'] })
  return (
    <section class="card">
      <header>
        <h2>{text.recent}</h2>
        <a href={`${base}/runs`}>{text.allRuns}</a>
      </header>
      <ul class="recent">
        {state.value.items.map((run) => (
          <li key={run.id}>
            <StatusBadge status={run.status} />
            <a class="grow clip user-text" href={`${base}/runs/${run.id}`}>
              {run.name ?? ('loop_name' in run ? run.loop_name : undefined) ?? run.id}
            </a>
            <span class="soft small">
              <Time at={run.created_at} relative />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Suggests the first steps in an empty project. */
const First = ({ project, base }: { readonly project: string; readonly base: string }) => (
  <section class="card">
    <Empty icon="start" title={text.first}>
      <p>{text.firstHint}</p>
      <div class="row">
        {may('project.edit') && (
          <>
            <LinkButton kind="primary" icon="workflows" href={`${base}/workflows?new=1`}>
              {text.firstWorkflow}
            </LinkButton>
            <LinkButton icon="agents" href={`${base}/agents?new=1`}>
              {text.firstAgent}
            </LinkButton>
          </>
        )}
      </div>
      <p>{text.firstWorker}</p>
      <Code>{`${text.firstCommand} ${project}`}</Code>
    </Empty>
  </section>
)

export default function HomePage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}`
  const wanted = currentUrl.value.query.get('minutes') ?? '60'
  const minutes = PERIODS.some(({ value }) => value === wanted) ? Number(wanted) : 60
  const { state, reload } = useQuery('overview.get', overviewInput(project, minutes), {
    kinds: ['run', 'interaction'],
  })
  return (
    <Page
      title={text.title}
      actions={
        <SelectField
          label={text.period}
          unlabelled
          value={String(minutes)}
          choices={PERIODS}
          onValue={(value) => setQuery({ minutes: value === '60' ? '' : value })}
        />
      }
    >
      <Show of={state.value} retry={reload} lines={8}>
        {(overview) => {
          const total = Object.values(overview.runs).reduce((sum, count) => sum + count, 0)
          return (
            <>
              {total === 0 && <First project={project} base={base} />}
              <Figures of={overview} base={base} />
              <Charts of={overview} />
              <div class="pair">
                <Failures of={overview} base={base} />
                <Recent project={project} base={base} />
              </div>
            </>
          )
        }}
      </Show>
    </Page>
  )
}
