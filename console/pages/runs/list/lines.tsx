/** The lines of the list of runs: their columns, and the cells of each run. */
import type { ComponentChildren } from 'preact'
import { useCallback, useMemo } from 'preact/hooks'
import type { RunChanges } from './changes.ts'
import { columns, definitionOf, StatusCell } from './columns.tsx'
import type { ListedRun } from './listed-run.ts'
import { listText as text } from './text.ts'
import type { Names } from './toolbar.tsx'

const narrow = matchMedia('(max-width: 45rem)')

/** The props for a `VirtualList` of runs. */
interface Lines {
  /** A value of `grid-template-columns`. */
  readonly columns: string
  readonly head: readonly ComponentChildren[]
  readonly render: (run: ListedRun) => {
    readonly cells: readonly ComponentChildren[]
    readonly selected: boolean
  }
}

/**
 * Returns the lines for the current state of the list. `render` stays the same function until a
 * line may look different, so that the existing lines are not re-rendered when a page is loaded.
 * @param options.chosen names of the columns. A narrow screen shows only the start time.
 * @param options.toggle selects or deselects a run; undefined if runs cannot be selected.
 * @param options.onFocus receives the id of the run whose link has the focus.
 */
export function useLines({
  project,
  names,
  changes,
  selected,
  chosen,
  toggle,
  onFocus,
}: {
  readonly project: string
  readonly names: Names
  readonly changes: RunChanges
  readonly selected: ReadonlyMap<string, ListedRun>
  readonly chosen: readonly string[]
  readonly toggle: ((run: ListedRun) => void) | undefined
  readonly onFocus: (id: string) => void
}): Lines {
  const version = changes.version.value
  const isNarrow = narrow.matches
  const selects = toggle !== undefined
  const shownNames = isNarrow ? 'started' : chosen.join()
  const shownColumns = useMemo(
    () => columns.filter(({ name }) => shownNames.split(',').includes(name)),
    [shownNames],
  )
  const render = useCallback(
    (run: ListedRun) => {
      const shown = { run, names, change: changes.of(run.id) }
      const own = run.name || run.external_id || ''
      const label = own === '' && isNarrow ? definitionOf(shown) : own
      return {
        selected: selected.has(run.id),
        cells: [
          ...(toggle
            ? [
                <input
                  type="checkbox"
                  tabIndex={-1}
                  aria-label={text.selectRun(label || run.id)}
                  checked={selected.has(run.id)}
                  onChange={() => toggle(run)}
                />,
              ]
            : []),
          <StatusCell {...shown} />,
          <a
            class="whole user-text run-name"
            href={`/p/${encodeURIComponent(project)}/runs/${encodeURIComponent(run.id)}`}
            onFocus={() => onFocus(run.id)}
          >
            {label || <span class="mono">{run.id}</span>}
          </a>,
          ...shownColumns.map(({ cell }) => cell(shown)),
        ],
      }
    },
    [project, names, version, selected, shownColumns, selects, isNarrow],
  )
  return {
    columns: [
      ...(selects ? ['1.5rem'] : []),
      '7.75rem',
      'minmax(12rem, 2.2fr)',
      ...shownColumns.map(({ width }) => width),
    ].join(' '),
    head: [
      ...(selects ? [<span class="unseen">{text.select}</span>] : []),
      text.status,
      text.run,
      ...shownColumns.map(({ label }) => label),
    ],
    render,
  }
}
