/** The selected runs of the list, and the bar with the actions on them. */
import { useEffect, useState } from 'preact/hooks'
import { Button } from '../../../design/button.tsx'
import { focusPart } from '../focus.ts'
import type { BulkAction } from './bulk.ts'
import type { ListedRun } from './listed-run.ts'
import { listText as text } from './text.ts'

export interface SelectedRuns {
  /** The selected runs by id. */
  readonly selected: ReadonlyMap<string, ListedRun>
  /** Selects or deselects a run. */
  readonly toggle: (run: ListedRun) => void
  /** Selects these runs instead of the selected ones. */
  readonly select: (runs: readonly ListedRun[]) => void
  /** Deselects all runs. The list gets the focus, because the bar disappears. */
  readonly clear: () => void
}
/** Returns the selected runs of a list. A list of another query begins without selected runs. */
export function useSelection(query: string): SelectedRuns {
  const [selected, setSelected] = useState<ReadonlyMap<string, ListedRun>>(new Map())
  useEffect(() => setSelected(new Map()), [query])
  const select = (runs: readonly ListedRun[]): void =>
    setSelected(new Map(runs.map((run) => [run.id, run])))
  return {
    selected,
    toggle: (run) => {
      const next = new Map(selected)
      if (!next.delete(run.id)) next.set(run.id, run)
      setSelected(next)
    },
    select,
    clear: () => {
      select([])
      focusPart('.runs-list .virtual')
    },
  }
}

/** Returns the menu items of the bulk actions. `about` names the runs that they change. */
export const bulkMenuItems = (act: (action: BulkAction) => () => void, about: string) => [
  { label: `${text.retry}: ${about}`, icon: 'reload' as const, onSelect: act('retry') },
  { label: `${text.resume}: ${about}`, icon: 'start' as const, onSelect: act('resume') },
  {
    label: `${text.cancel}: ${about}`,
    icon: 'stop' as const,
    danger: true,
    onSelect: act('cancel'),
  },
]

/** The number of selected runs, and the actions on them. */
export const Selection = ({
  count,
  act,
  onAll,
  onNone,
}: {
  readonly count: number
  readonly act: (action: BulkAction) => () => void
  readonly onAll: () => void
  readonly onNone: () => void
}) => (
  <div class="row selection" role="region" aria-label={text.actions}>
    <strong role="status">{text.selected(count)}</strong>
    <Button onClick={act('retry')}>{text.retry}</Button>
    <Button onClick={act('resume')}>{text.resume}</Button>
    <Button danger onClick={act('cancel')}>
      {text.cancel}
    </Button>
    <span class="grow" />
    <Button kind="quiet" onClick={onAll}>
      {text.selectAll}
    </Button>
    <Button kind="quiet" onClick={onNone}>
      {text.unselect}
    </Button>
  </div>
)
