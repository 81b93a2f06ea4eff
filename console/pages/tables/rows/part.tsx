/** The rows of a table with their filter, selection and dialogs. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { getOwn } from '../../../../protocol/lookup.ts'
import type { Table } from '../../../../protocol/tables/schema.ts'
import { ApiError, call } from '../../../api/client.ts'
import { Button } from '../../../design/button.tsx'
import { showDone } from '../../../design/notify.ts'
import { Confirm } from '../../../design/overlay.tsx'
import { Empty, Failure, Skeleton } from '../../../design/states.tsx'
import { currentUrl, setQuery } from '../../../router/router.ts'
import { OpenRow } from '../row.tsx'
import { tablesText as text } from '../text.ts'
import { ConflictDialog } from './conflict.tsx'
import { columnsOf, rowQueryOf, toggledSort, writeSort } from './filter.ts'
import { Grid } from './grid.tsx'
import { type TableRow, useRows } from './rows.ts'
import { type Conflict, saveRow } from './save.ts'
import { Toolbar } from './toolbar.tsx'

/** Maximum number of deletions that run at the same time. */
const MAX_RUNNING = 6
const nothing: ReadonlySet<string> = new Set()

export function RowsPart({
  project,
  table: { id, name, schema },
  editable,
  onInsert,
  onImport,
}: {
  readonly project: string
  readonly table: Table
  readonly editable: boolean
  readonly onInsert: () => void
  readonly onImport: () => void
}) {
  const { query: parameters } = currentUrl.value
  const asked = rowQueryOf(parameters, schema)
  const { query, sort } = asked
  const columns = columnsOf(parameters, schema)
  const store = useRows(project, id, query)
  const [selected, setSelected] = useState(nothing)
  const [deleting, setDeleting] = useState<ReadonlySet<string>>()
  const [conflict, setConflict] = useState<Conflict>()
  const opened = parameters.get('row') ?? ''
  const { rows, next, loading, known, error } = store.state.value
  const isFiltered = query.filter !== undefined || query.search !== undefined
  const hasDialog = deleting !== undefined || conflict !== undefined || opened !== ''
  const hadDialog = useRef(false)
  useEffect(() => {
    // The focus returns to the grid when the last dialog has closed.
    if (hadDialog.current && !hasDialog) document.querySelector<HTMLElement>('.sheet')?.focus()
    hadDialog.current = hasDialog
  }, [hasDialog])
  const storeCell = async (row: TableRow, column: string, value: unknown): Promise<void> => {
    const stored = getOwn(row.data, column) ?? null
    if (JSON.stringify(stored) === JSON.stringify(value)) return
    const outcome = await saveRow(project, row, { [column]: value })
    if ('saved' in outcome) store.put(outcome.saved)
    else setConflict(outcome.conflict)
  }
  const remove = async (ids: ReadonlySet<string>): Promise<void> => {
    const gone = new Set<string>()
    try {
      await deleteRows(project, id, ids, (row_id) => gone.add(row_id))
      showDone(text.deletedRows(gone.size))
    } finally {
      store.remove(gone)
      setSelected(nothing)
      if (gone.has(opened)) setQuery({ row: '' })
    }
  }
  const open = (row_id: string): void => setQuery({ row: row_id }, { push: true })
  return (
    <div class="stack close">
      <Toolbar project={project} id={id} schema={schema} asked={asked} columns={columns} />
      {error && <Failure error={error} retry={() => void store.reload()} />}
      {rows.length === 0 && !known && !error && <Skeleton lines={10} />}
      {rows.length === 0 && known && !error && (
        <NoRows
          isFiltered={isFiltered}
          editable={editable}
          onInsert={onInsert}
          onImport={onImport}
        />
      )}
      {rows.length > 0 && (
        <>
          <Grid
            label={text.grid(name)}
            columns={columns}
            rows={rows}
            more={next !== undefined}
            editable={editable}
            sort={query.search ? [] : sort}
            sortable={!query.search}
            selected={selected}
            onSort={(field, add) => setQuery({ sort: writeSort(toggledSort(sort, field, add)) })}
            onSelect={setSelected}
            onOpen={(row) => open(row.id)}
            onEnd={loading || error ? undefined : () => void store.more()}
            onDelete={() => editable && setDeleting(selected)}
            store={storeCell}
          />
          <div class="row apart small soft sheet-foot" role="status" aria-busy={loading}>
            {selected.size > 0 ? (
              <SelectedRows
                selected={selected}
                onOpen={open}
                onDelete={editable ? () => setDeleting(selected) : undefined}
                onNone={() => setSelected(nothing)}
              />
            ) : (
              <span>{text.loaded(rows.length, next !== undefined)}</span>
            )}
            {query.search ? <span>{text.searchSort}</span> : <span>{text.gridHint}</span>}
          </div>
        </>
      )}
      {opened !== '' && (
        <OpenRow
          project={project}
          id={id}
          rowId={opened}
          schema={schema}
          editable={editable}
          onSaved={(row) => store.put(row)}
          onConflict={setConflict}
          onDelete={() => setDeleting(new Set([opened]))}
          onClose={() => setQuery({ row: '' })}
        />
      )}
      {deleting && (
        <Confirm
          title={text.deleteRowsTitle(deleting.size)}
          action={deleting.size === 1 ? text.deleteRow : text.deleteRows}
          danger
          onConfirm={() => remove(deleting)}
          onClose={() => setDeleting(undefined)}
        >
          <p>{text.deleteRowsHint}</p>
        </Confirm>
      )}
      {conflict && (
        <ConflictDialog
          project={project}
          conflict={conflict}
          onEnd={(row) => {
            setConflict(undefined)
            if (row) store.put(row)
            else void store.reload()
          }}
        />
      )}
    </div>
  )
}

/**
 * Deletes rows, some at the same time. A row that is already deleted counts as deleted.
 * @param onDeleted called with the id of each deleted row.
 */
async function deleteRows(
  project: string,
  id: string,
  ids: ReadonlySet<string>,
  onDeleted: (row_id: string) => void,
): Promise<void> {
  const all = [...ids]
  for (let at = 0; at < all.length; at += MAX_RUNNING)
    await Promise.all(
      all.slice(at, at + MAX_RUNNING).map(async (row_id) => {
        await call('row.delete', { project, id, row_id }).catch((fault: unknown) => {
          if (!(fault instanceof ApiError && fault.status === 404)) throw fault
        })
        onDeleted(row_id)
      }),
    )
}

/** Shown in place of the grid while there are no rows. */
const NoRows = ({
  isFiltered,
  editable,
  onInsert,
  onImport,
}: {
  readonly isFiltered: boolean
  readonly editable: boolean
  readonly onInsert: () => void
  readonly onImport: () => void
}) => (
  <section class="card">
    <Empty icon="tables" title={isFiltered ? text.noMatches : text.noRows}>
      {isFiltered ? (
        <Button onClick={() => setQuery({ filter: '', q: '', mode: '' })}>
          {text.clearFilters}
        </Button>
      ) : (
        <>
          <p>{text.noRowsHint}</p>
          {editable && (
            <div class="row">
              <Button icon="plus" onClick={onInsert}>
                {text.insert}
              </Button>
              <Button icon="upload" onClick={onImport}>
                {text.import}
              </Button>
            </div>
          )}
        </>
      )}
    </Empty>
  </section>
)

/** The number of selected rows, and the actions on them. */
const SelectedRows = ({
  selected,
  onOpen,
  onDelete,
  onNone,
}: {
  readonly selected: ReadonlySet<string>
  readonly onOpen: (row_id: string) => void
  /** Undefined if the rows cannot be deleted. */
  readonly onDelete: (() => void) | undefined
  readonly onNone: () => void
}) => {
  const [first = ''] = selected
  return (
    <span class="row">
      {text.selected(selected.size)}
      {selected.size === 1 && <Button onClick={() => onOpen(first)}>{text.openRow}</Button>}
      {onDelete && (
        <Button danger icon="trash" onClick={onDelete}>
          {text.deleteRows}
        </Button>
      )}
      <Button kind="quiet" onClick={onNone}>
        {text.selectNone}
      </Button>
    </span>
  )
}
