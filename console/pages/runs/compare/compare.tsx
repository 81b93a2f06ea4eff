/**
 * Two runs side by side: their facts, the differences between their inputs and outputs, and their
 * steps.
 */
import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { CallReply } from '../../../api/client.ts'
import { useQuery } from '../../../api/query.ts'
import { Button, LinkButton } from '../../../design/button.tsx'
import { Checkbox, TextField } from '../../../design/field.tsx'
import { Empty, Failure, Skeleton } from '../../../design/states.tsx'
import { Duration, Time } from '../../../design/time.tsx'
import { Tree } from '../../../design/tree.tsx'
import { VirtualList } from '../../../design/virtual/list.tsx'
import { currentUrl, setQuery } from '../../../router/router.ts'
import { Page, type PageProps } from '../../../shell/page.tsx'
import { formatDuration } from '../../../text/format.ts'
import { useNames } from '../list/names.ts'
import { StatusBadge } from '../status.tsx'
import { runsText } from '../text.ts'
import { type Difference, differences, pairSteps, type StepPair, timeOf } from './diff.ts'
import { compareText as text } from './text.ts'

/** Maximum length of a text that is shown as a whole. A longer one is shown as a tree. */
const MAX_CHARACTERS = 200
type Detail = CallReply<'run.get'>

export default function ComparePage({ params }: PageProps) {
  const { project = '' } = params
  const { query } = currentUrl.value
  const [a, b] = [query.get('a') ?? '', query.get('b') ?? '']
  const runs = `/p/${encodeURIComponent(project)}/runs`
  const crumbs = [{ label: runsText.runs, href: runs }]
  if (a === '' || b === '')
    return (
      <Page title={text.title} crumbs={crumbs}>
        <Choose a={a} b={b} />
      </Page>
    )
  return (
    <Page
      title={text.title}
      crumbs={crumbs}
      actions={
        <LinkButton href={`?${new URLSearchParams({ a: b, b: a })}`}>{text.swap}</LinkButton>
      }
    >
      <Both key={`${a} ${b}`} project={project} a={a} b={b} />
    </Page>
  )
}

function Choose({ a, b }: { readonly a: string; readonly b: string }) {
  const [one, setOne] = useState(a)
  const [other, setOther] = useState(b)
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault()
        setQuery({ a: one.trim(), b: other.trim() }, { push: true })
      }}
    >
      <Empty icon="copy" title={text.choose}>
        {text.chooseHint}
      </Empty>
      <div class="columns">
        <TextField label={text.idOf(text.a)} required value={one} onValue={setOne} />
        <TextField label={text.idOf(text.b)} required value={other} onValue={setOther} />
      </div>
      <div>
        <Button kind="primary" submit>
          {text.compare}
        </Button>
      </div>
    </form>
  )
}

function Both({
  project,
  a,
  b,
}: {
  readonly project: string
  readonly a: string
  readonly b: string
}) {
  const one = useQuery('run.get', { project, id: a })
  const other = useQuery('run.get', { project, id: b })
  const stepsOfOne = useQuery('run.steps', { id: a }).state.value
  const stepsOfOther = useQuery('run.steps', { id: b }).state.value
  const [left, right] = [one.state.value, other.state.value]
  const error = left.error ?? right.error ?? stepsOfOne.error ?? stepsOfOther.error
  return (
    <>
      {error && <Failure error={error} />}
      {left.data && right.data ? (
        <>
          <Facts project={project} a={left.data} b={right.data} />
          <Values title={text.input} a={inputOf(left.data)} b={inputOf(right.data)} />
          {stepsOfOne.data && stepsOfOther.data ? (
            <Steps pairs={pairSteps(stepsOfOne.data.items, stepsOfOther.data.items)} />
          ) : (
            <Skeleton />
          )}
          <Values title={text.output} a={left.data.result} b={right.data.result} />
        </>
      ) : (
        !error && <Skeleton lines={10} />
      )}
    </>
  )
}

const inputOf = (run: Detail): unknown => ('loop_id' in run ? run.event : run.input)

function Facts({
  project,
  a,
  b,
}: {
  readonly project: string
  readonly a: Detail
  readonly b: Detail
}) {
  const names = useNames(project)
  const link = ({ id, name }: Detail) => (
    <a class="user-text" href={`/p/${encodeURIComponent(project)}/runs/${id}`}>
      {name || id}
    </a>
  )
  const line = (name: string, of: (run: Detail) => ComponentChildren) => (
    <tr>
      <th scope="row">{name}</th>
      <td class="user-text">{of(a)}</td>
      <td class="user-text">{of(b)}</td>
    </tr>
  )
  return (
    <section class="stack close" aria-label={text.facts}>
      <div class="table-frame">
        <table class="table fixed">
          <thead>
            <tr>
              <th scope="col">{text.fact}</th>
              <th scope="col">
                {text.a}: {link(a)}
              </th>
              <th scope="col">
                {text.b}: {link(b)}
              </th>
            </tr>
          </thead>
          <tbody>
            {line(text.status, ({ status }) => (
              <StatusBadge status={status} />
            ))}
            {line(text.definition, (run) =>
              'loop_id' in run
                ? text.versionOf(run.loop_name ?? run.loop_id, runsText.version(run.loop_version))
                : run.definition_id === ''
                  ? runsText.inline
                  : text.versionOf(
                      names.get(run.definition_id) ?? run.definition_id,
                      runsText.version(run.definition_version),
                    ),
            )}
            {line(text.started, ({ started_at, created_at }) => (
              <Time at={started_at ?? created_at} />
            ))}
            {line(text.duration, ({ started_at, created_at, completed_at }) => (
              <Duration from={started_at ?? created_at} to={completed_at} />
            ))}
            {line(text.queue, (run) => ('queue' in run ? run.queue : ''))}
            {line(text.startedBy, (run) =>
              'loop_id' in run
                ? run.source?.label
                : (names.get(run.initiated_by ?? '') ?? run.initiated_by),
            )}
            {(a.error_message ?? b.error_message) !== undefined &&
              line(text.error, ({ error_message }) => error_message)}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function Values({
  title,
  a,
  b,
}: {
  readonly title: string
  readonly a: unknown
  readonly b: unknown
}) {
  const found = useMemo(() => differences(a, b), [a, b])
  return (
    <section class="stack close">
      <div class="row">
        <h2>{title}</h2>
        <span class="soft">{found.length === 0 ? text.equal : text.differences(found.length)}</span>
      </div>
      {found.length > 0 && (
        <div class="table-frame">
          <table class="table fixed">
            <thead>
              <tr>
                <th scope="col">{text.place}</th>
                <th scope="col">{text.a}</th>
                <th scope="col">{text.b}</th>
              </tr>
            </thead>
            <tbody>
              {found.map((one) => (
                <Place key={one.path} difference={one} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

const Place = ({ difference: { path, a, b } }: { readonly difference: Difference }) => (
  <tr>
    <th scope="row" class="mono user-text">
      {path === '' ? text.whole : path}
    </th>
    <td>{cellOf(a)}</td>
    <td>{cellOf(b)}</td>
  </tr>
)
function cellOf(value: unknown) {
  if (value === undefined) return <span class="soft">{text.absent}</span>
  return typeof value === 'object' ||
    (typeof value === 'string' && value.length > MAX_CHARACTERS) ? (
    <Tree value={value} />
  ) : (
    <span class="mono user-text">{JSON.stringify(value)}</span>
  )
}

function Steps({ pairs }: { readonly pairs: readonly StepPair[] }) {
  const only = currentUrl.value.query.get('different') === '1'
  const shown = only ? pairs.filter(({ differs }) => differs) : pairs
  return (
    <section class="stack close">
      <div class="row">
        <h2>{text.steps}</h2>
        <Checkbox
          label={text.onlyDifferent}
          checked={only}
          onChecked={(on) => setQuery({ different: on ? '1' : '' })}
        />
      </div>
      {shown.length === 0 ? (
        <p class="soft">{text.noSteps}</p>
      ) : (
        <VirtualList
          items={shown}
          line={38}
          columns="minmax(10rem, 2fr) 7.75rem 6rem 7.75rem 6rem minmax(8rem, 1fr)"
          height={`min(${shown.length * 38 + 44}px, 60vh)`}
          label={text.steps}
          head={[text.step, text.a, text.duration, text.b, text.duration, text.change]}
          keyOf={({ key }) => key}
          render={({ key, a, b, differs }) => ({
            selected: differs,
            cells: [
              <span class="user-text">{a?.step_name ?? b?.step_name ?? key}</span>,
              a ? <StatusBadge status={a.status} /> : <span class="soft">{text.absent}</span>,
              durationOf(timeOf(a)),
              b ? <StatusBadge status={b.status} /> : <span class="soft">{text.absent}</span>,
              durationOf(timeOf(b)),
              changeOf(timeOf(a), timeOf(b)),
            ],
          })}
        />
      )}
      {shown.some(({ a, b }) => Math.max(a?.attempt ?? 1, b?.attempt ?? 1) > 1) && (
        <p class="small soft">{text.withPauses}</p>
      )}
    </section>
  )
}
const durationOf = (ms: number | undefined) => (ms === undefined ? '' : formatDuration(ms))
function changeOf(a: number | undefined, b: number | undefined) {
  if (a === undefined || b === undefined || a === b) return ''
  return (
    <span class={b > a ? 'fault-text' : 'soft'}>
      {b > a ? text.slower(formatDuration(b - a)) : text.faster(formatDuration(a - b))}
    </span>
  )
}
