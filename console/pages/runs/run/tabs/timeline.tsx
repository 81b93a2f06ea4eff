/**
 * The timeline of a run: its steps as rows with bars on a time axis. Only the visible rows are in
 * the document.
 */
import { useMemo, useState } from 'preact/hooks'
import { Button, IconButton, LinkButton } from '../../../../design/button.tsx'
import { Checkbox } from '../../../../design/field.tsx'
import { Empty, Failure, Skeleton } from '../../../../design/states.tsx'
import { now } from '../../../../design/time.tsx'
import { currentUrl, setQuery } from '../../../../router/router.ts'
import { rangeOf, type TimeRange, zoom } from '../data/axis.ts'
import type { LiveRun } from '../data/live-run.ts'
import { leavesOf, StepTree } from '../data/tree.ts'
import { runText as text } from '../text.ts'
import { Waterfall } from './waterfall.tsx'

const problems: ReadonlySet<string> = new Set(['failed', 'suspended', 'running'])

/**
 * Shows the timeline. The key of the selected step is in the URL (`step`).
 * @param props.from start of the run, in Unix milliseconds; `to` is its end, or undefined.
 */
export function Timeline({
  run,
  top,
  from,
  to,
}: {
  readonly run: LiveRun
  /** The keys of the top-level steps, if they are known. */
  readonly top: ReadonlySet<string> | undefined
  readonly from: number
  readonly to: number | undefined
}) {
  const [opened, setOpened] = useState<ReadonlyMap<string, boolean>>(new Map())
  const [view, setView] = useState<TimeRange>()
  const tree = useMemo(() => new StepTree(), [run.fold])
  const version = run.version.value
  const filtered = currentUrl.value.query.get('problems') === '1'
  const rows = useMemo(() => {
    tree.update(run.fold.steps, top)
    const all = tree.rows(opened, text.item)
    return filtered ? leavesOf(tree.rows(openAll(tree, true), text.item), problems) : all
  }, [version, opened, filtered, top])
  const end = to ?? now.value
  const whole = rangeOf(from, end)
  const range = view ?? whole
  const { error, loaded } = run
  if (rows.length === 0 && !filtered) {
    if (error.value) return <Failure error={error.value} retry={run.refresh} />
    if (!loaded.value) return <Skeleton lines={8} />
    return (
      <Empty icon="runs" title={text.noSteps}>
        {text.noStepsHint}
      </Empty>
    )
  }
  const change = (next: TimeRange): void =>
    setView(next.from <= whole.from && next.to >= whole.to ? undefined : next)
  const groups = run.fold.steps.size > tree.top.length
  return (
    <div class="stack close">
      <div class="row apart">
        <div class="row">
          <Checkbox
            label={text.onlyProblems}
            checked={filtered}
            onChecked={(on) => setQuery({ problems: on ? '1' : '' })}
          />
          {groups && !filtered && (
            <>
              <Button kind="quiet" onClick={() => setOpened(openAll(tree, true))}>
                {text.openAll}
              </Button>
              <Button kind="quiet" onClick={() => setOpened(openAll(tree, false))}>
                {text.closeAll}
              </Button>
            </>
          )}
        </div>
        <div class="row">
          <Legend />
          <IconButton
            icon="minus"
            label={text.zoomOut}
            onClick={() => change(zoom(range, 0.5, 0.5, whole))}
          />
          <IconButton
            icon="plus"
            label={text.zoomIn}
            onClick={() => change(zoom(range, 2, 0.5, whole))}
          />
          <IconButton icon="fit" label={text.fit} onClick={() => setView(undefined)} />
        </div>
      </div>
      {rows.length === 0 ? (
        <Empty icon="check" title={text.noProblems}>
          <LinkButton href={withoutProblems()}>{text.timeline}</LinkButton>
        </Empty>
      ) : (
        <Waterfall
          rows={rows}
          range={range}
          whole={whole}
          onRange={change}
          onOpen={(id, open) => setOpened(new Map(opened).set(id, open))}
        />
      )}
    </div>
  )
}

const withoutProblems = (): string => {
  const query = new URLSearchParams(location.search)
  query.delete('problems')
  return `?${query}`
}

/** Returns a map in which all groups are expanded or collapsed. */
function openAll(tree: StepTree, open: boolean): ReadonlyMap<string, boolean> {
  const all = new Map<string, boolean>()
  for (const { key } of tree.top) {
    const branches = tree.branchesOf(key)
    if (branches.length > 0) all.set(key, open)
    for (const { id } of branches) all.set(id, open)
  }
  return all
}

const Legend = () => (
  <span class="row small soft legend" aria-hidden="true">
    <i class="bar info" /> {text.legendWork}
    <i class="bar info">
      <i class="bar idle" />
    </i>{' '}
    {text.legendWait}
    <i class="bar info">
      <i class="bar elsewhere" />
    </i>{' '}
    {text.legendChild}
  </span>
)
