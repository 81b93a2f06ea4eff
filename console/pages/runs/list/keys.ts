/** The commands of the list of runs: moving through the list, selecting runs, choosing columns. */
import { useRef, useState } from 'preact/hooks'
import type { Growing } from '../../../api/growing.ts'
import { useCommands } from '../../../shell/shortcuts.ts'
import type { ListedRun } from './listed-run.ts'
import type { SelectedRuns } from './selection.tsx'
import { listText as text } from './text.ts'

interface CurrentRun {
  /** Position of the run that the commands concern; -1 without a current run. */
  readonly at: number
  readonly setCurrent: (id: string) => void
}

/**
 * Registers the commands while the list is shown.
 * @param options.selects whether runs can be selected.
 */
export function useListKeys({
  items,
  selection: { selected, toggle, clear },
  selects,
  onColumns,
}: {
  readonly items: Growing<ListedRun>
  readonly selection: SelectedRuns
  readonly selects: boolean
  readonly onColumns: () => void
}): CurrentRun {
  const [current, setCurrent] = useState<string>()
  // The commands are not registered again for each page of the list, so they read its newest state.
  const shown = useRef(items)
  shown.current = items
  const at = items.indexOf(current)
  const move = (by: number) => () => {
    const all = shown.current
    const next = all.at(Math.max(0, Math.min(all.length - 1, at + by)))
    if (next) setCurrent(next.id)
  }
  const toggleCurrent = (): void => {
    const run = at < 0 ? undefined : shown.current.at(at)
    if (run) toggle(run)
  }
  useCommands(
    [
      { id: 'runs-next', label: text.next, keys: 'j', run: move(1) },
      { id: 'runs-previous', label: text.previous, keys: 'k', run: move(-1) },
      ...(selects
        ? [{ id: 'runs-toggle', label: text.toggle, keys: 'x', run: toggleCurrent }]
        : []),
      ...(selected.size > 0
        ? [{ id: 'runs-unselect', label: text.unselect, keys: 'Escape', run: clear }]
        : []),
      { id: 'runs-columns', label: text.columns, run: onColumns },
    ],
    [at, selected, selects],
  )
  return { at, setCurrent }
}
