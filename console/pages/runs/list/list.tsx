/**
 * The list of runs of a project, updated live, with filters, saved views, columns and bulk actions.
 */
import { computed } from '@preact/signals'
import { useMemo, useRef, useState } from 'preact/hooks'
import { commandOf } from '../../../api/call-text.ts'
import { type Listing, type Pages, useList, useQuery } from '../../../api/query.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { Code, CopyCall } from '../../../design/copy.tsx'
import { Menu } from '../../../design/overlay.tsx'
import { Empty, Failure, Skeleton } from '../../../design/states.tsx'
import { VirtualList } from '../../../design/virtual/list.tsx'
import { currentUrl, setQuery } from '../../../router/router.ts'
import { Page, type PageProps } from '../../../shell/page.tsx'
import { may } from '../../../shell/session.ts'
import { Views } from '../../../views/views.tsx'
import { runsText } from '../text.ts'
import type { BulkAction } from './bulk.ts'
import { BulkDialog } from './bulk.tsx'
import { MAX_NEWS, useRunChanges } from './changes.ts'
import { ColumnsDialog, chosenColumns } from './columns.tsx'
import { filterOf, listInput, queryOf, type RunFilter, type RunSort, sortOf } from './filters.ts'
import { useListKeys } from './keys.ts'
import { useLines } from './lines.tsx'
import { listedRun, runPacking } from './listed-run.ts'
import { useNames } from './names.ts'
import { useColumns } from './preferences.ts'
import { bulkMenuItems, type SelectedRuns, Selection, useSelection } from './selection.tsx'
import { listText as text } from './text.ts'
import { FilterDialog, Filters } from './toolbar.tsx'

/** Height of a row in pixels. */
const LINE_PX = 42
/** Distance from the top within which the newest runs count as visible. */
const NEAR_TOP_PX = 60
const COMMAND = `run start --definition-id <workflow> --input '{}'`

type OpenDialog =
  | { readonly kind: 'filters' | 'columns' }
  | { readonly kind: 'bulk'; readonly action: BulkAction; readonly by: 'filter' | 'selection' }

export default function RunsPage({ params }: PageProps) {
  const { project = '' } = params
  const { query } = currentUrl.value
  const filter = filterOf(query)
  const sort = sortOf(query)
  const input = listInput(project, query)
  const list = useList('run.list', input, { keep: listedRun, packing: runPacking })
  const count = useQuery('run.count', { project, ...filter } as never)
  const { list: items, error, loading, more } = useShown(list)
  const frame = useRef<HTMLDivElement>(null)
  const scroller = (): Element | null | undefined => frame.current?.querySelector('.virtual')
  const isAtTop = (): boolean => (scroller()?.scrollTop ?? 0) < NEAR_TOP_PX
  const restart = (): void => {
    changes.forget()
    list.restart()
    count.reload()
  }
  const changes = useRunChanges(project, (id) => items.indexOf(id) >= 0, isAtTop, restart)
  const names = useNames(project)
  const [stored, storeColumns] = useColumns(project)
  const chosen = chosenColumns(stored)
  const [open, setOpen] = useState<OpenDialog>()
  const showColumns = (): void => setOpen({ kind: 'columns' })
  const selection = useSelection(query.toString())
  const { selected } = selection
  const operates = may('runs.operate')
  const { at, setCurrent } = useListKeys({
    items,
    selection,
    selects: operates,
    onColumns: showColumns,
  })
  const filtered = Object.keys(filter).length > 0
  const lines = useLines({
    project,
    names,
    changes,
    selected,
    chosen,
    toggle: operates ? selection.toggle : undefined,
    onFocus: setCurrent,
  })
  const counted = count.state.value.data
  const bulk = (by: 'filter' | 'selection') => (action: BulkAction) => () =>
    setOpen({ kind: 'bulk', action, by })
  const showNews = (): void => {
    scroller()?.scrollTo(0, 0)
    restart()
  }
  return (
    <Page
      full
      wide
      title={runsText.runs}
      actions={
        <>
          {counted && (
            <span class="soft" role="status">
              {text.count(counted.count, counted.more)}
            </span>
          )}
          <SavedViews project={project} filter={filter} sort={sort} columns={chosen} />
          <CopyCall name="run.list" input={input as never} />
          <IconButton icon="tables" label={text.columns} onClick={showColumns} />
          {operates && (
            <Menu
              label={text.allMatching}
              items={bulkMenuItems(bulk('filter'), text.allMatching)}
            />
          )}
        </>
      }
    >
      <div class="runs-list" ref={frame}>
        <Filters
          filter={filter}
          sort={sort}
          names={names}
          onMore={() => setOpen({ kind: 'filters' })}
        />
        {selected.size > 0 && (
          <Selection
            count={selected.size}
            act={bulk('selection')}
            onAll={() => selection.select(items.all)}
            onNone={selection.clear}
          />
        )}
        {changes.news.value > 0 && !isAtTop() && (
          <div class="news">
            <Button icon="reload" onClick={showNews}>
              {text.news(changes.news.value, changes.news.value === MAX_NEWS)}
            </Button>
          </div>
        )}
        {error && <Failure error={error} retry={list.reload} />}
        {items.length === 0 ? (
          <NoRuns
            project={project}
            loading={loading}
            filtered={filtered}
            failed={error !== undefined}
            sort={sort}
          />
        ) : (
          <VirtualList
            items={items}
            line={LINE_PX}
            columns={lines.columns}
            height="100%"
            label={text.list}
            head={lines.head}
            keyOf={({ id }) => id}
            {...(more && { onEnd: list.more })}
            {...(at >= 0 && { current: at })}
            render={lines.render}
          />
        )}
      </div>
      {open && (
        <ListDialog
          project={project}
          open={open}
          filter={filter}
          chosen={chosen}
          selected={selected}
          onChoose={storeColumns}
          onClose={() => setOpen(undefined)}
          onChanged={() => {
            selection.select([])
            list.reload()
            count.reload()
          }}
        />
      )}
    </Page>
  )
}

/**
 * Returns the part of the list's state that the page shows. The returned object stays the same when
 * more runs begin to load, so the component is not re-rendered.
 */
function useShown<T>({ state }: Listing<T>): Pages<T> {
  const shown = useMemo(() => {
    let last: Pages<T> | undefined
    return computed(() => {
      const next = state.value
      const isSame =
        next.list === last?.list &&
        next.more === last.more &&
        next.error === last.error &&
        (next.list.length > 0 || next.loading === last.loading)
      if (!isSame || !last) last = next
      return last
    })
  }, [state])
  return shown.value
}

/**
 * The dialog of the list that is open.
 * @param props.onChoose stores the chosen columns.
 * @param props.onChanged called after a bulk action.
 */
function ListDialog({
  project,
  open,
  filter,
  chosen,
  selected,
  onChoose,
  onClose,
  onChanged,
}: {
  readonly project: string
  readonly open: OpenDialog
  readonly filter: RunFilter
  readonly chosen: readonly string[]
  readonly selected: SelectedRuns['selected']
  readonly onChoose: (columns: readonly string[]) => Promise<void>
  readonly onClose: () => void
  readonly onChanged: () => void
}) {
  switch (open.kind) {
    case 'filters':
      return <FilterDialog project={project} filter={filter} onClose={onClose} />
    case 'columns':
      return <ColumnsDialog chosen={chosen} onChoose={onChoose} onClose={onClose} />
    case 'bulk':
      return (
        <BulkDialog
          project={project}
          action={open.action}
          object={open.by === 'filter' ? { filter } : { runs: [...selected.values()] }}
          onClose={onClose}
          onDone={onChanged}
        />
      )
  }
}

/** The saved views of the list. The view that is shown can be saved. */
function SavedViews({
  project,
  filter,
  sort,
  columns,
}: {
  readonly project: string
  readonly filter: RunFilter
  readonly sort: RunSort
  readonly columns: readonly string[]
}) {
  return (
    <Views
      project={project}
      list="runs"
      none={text.viewNone}
      current={currentUrl.value.query.get('view') ?? ''}
      shown={{ filter: { ...filter }, sort: { ...sort }, columns: [...columns] }}
      onApply={(view, saved) =>
        saved
          ? setQuery({ view: view?.id })
          : setQuery(
              {
                ...queryOf(view?.filter ?? {}, view?.sort as RunSort | undefined),
                view: view?.id ?? '',
              },
              { push: true },
            )
      }
    />
  )
}

/** Shown in place of the list while it has no runs. */
function NoRuns({
  project,
  loading,
  filtered,
  failed,
  sort,
}: {
  readonly project: string
  readonly loading: boolean
  readonly filtered: boolean
  readonly failed: boolean
  readonly sort: RunSort
}) {
  if (loading) return <Skeleton lines={12} />
  if (filtered)
    return (
      <Empty icon="filter" title={text.noMatch}>
        <Button onClick={() => setQuery({ ...queryOf({}, sort), view: '' })}>{text.clear}</Button>
      </Empty>
    )
  if (failed) return null
  return (
    <Empty icon="runs" title={text.none}>
      <p>{text.noneHint}</p>
      <Code>{commandOf(COMMAND, project)}</Code>
    </Empty>
  )
}
