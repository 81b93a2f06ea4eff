/** The page of one table: its rows as a grid, its columns, and its statistics. */
import { useState } from 'preact/hooks'
import type { Table } from '../../../protocol/tables/schema.ts'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu, type MenuItem } from '../../design/overlay.tsx'
import { Failure, Notice, Skeleton } from '../../design/states.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { UntouchedForm } from '../../form/untouched.tsx'
import { currentUrl, go } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import type { ExportFormat } from './files/export.ts'
import { ImportDialog } from './files/import.tsx'
import { useExport } from './files/use-export.ts'
import { NewRow } from './row.tsx'
import { rowQueryOf } from './rows/filter.ts'
import { RowsPart } from './rows/part.tsx'
import { DetailsDialog, SchemaPart, StatsPart } from './schema.tsx'
import { tablesText as text } from './text.ts'

type Open = 'insert' | 'import' | 'details' | 'delete'

export default function TablePage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const id = params['id'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/tables`
  const { state, reload } = useQuery('table.get', { project, id }, { kinds: ['table'], id })
  const [open, setOpen] = useState<Open>()
  const exporting = useExport()
  const editable = may('project.edit')
  const close = (): void => setOpen(undefined)
  useCommands(
    editable
      ? [
          {
            id: 'insert',
            label: text.insert,
            icon: 'plus',
            keys: 'c',
            run: () => setOpen('insert'),
          },
          { id: 'import', label: text.import, icon: 'upload', run: () => setOpen('import') },
        ]
      : [],
    [editable],
  )
  const { data: table, error } = state.value
  const crumbs = [{ label: text.title, href: base }]
  if (!table)
    return (
      <Page title={id} crumbs={crumbs} wide>
        {error ? <Failure error={error} retry={reload} /> : <Skeleton lines={8} />}
      </Page>
    )
  const { query } = rowQueryOf(currentUrl.value.query, table.schema)
  const { name, schema } = table
  const runExport = (format: ExportFormat) =>
    exporting.start({ project, id, name, schema, query }, format)
  const remove = async (): Promise<void> => {
    await call('table.delete', { project, id })
    showDone(text.deleted)
    go(base)
  }
  return (
    <Page
      wide
      title={table.name}
      crumbs={crumbs}
      actions={
        <>
          <CopyCall
            name="table.query"
            input={{
              project,
              id,
              ...(query.filter && { filter: query.filter }),
              ...(query.sort && { sort: [...query.sort] }),
            }}
          />
          <Menu label={text.actions} items={menuItems(id, editable, setOpen, runExport)} />
          {editable && (
            <Button kind="primary" icon="plus" shortcut="c" onClick={() => setOpen('insert')}>
              {text.insert}
            </Button>
          )}
        </>
      }
    >
      {error && <Failure error={error} retry={reload} />}
      {table.description && <p class="soft user-text">{table.description}</p>}
      {exporting.count !== undefined && (
        <Notice>
          <div class="row apart" role="status">
            {text.exporting(exporting.count)}
            <Button onClick={exporting.stop}>{text.stop}</Button>
          </div>
        </Notice>
      )}
      <TableTabs
        project={project}
        table={table}
        editable={editable}
        onOpen={setOpen}
        onSaved={reload}
      />
      {open === 'insert' && (
        <NewRow project={project} id={id} schema={table.schema} onClose={close} />
      )}
      {open === 'import' && <ImportDialog project={project} table={table} onClose={close} />}
      {open === 'details' && (
        <DetailsDialog project={project} table={table} onSaved={reload} onClose={close} />
      )}
      {open === 'delete' && (
        <Confirm
          title={text.deleteTitle}
          action={text.delete}
          danger
          onConfirm={remove}
          onClose={close}
        >
          <p class="user-text">{text.deleteHint(table.name)}</p>
        </Confirm>
      )}
    </Page>
  )
}

const menuItems = (
  id: string,
  editable: boolean,
  open: (dialog: Open) => void,
  runExport: (format: ExportFormat) => Promise<void>,
): MenuItem[] => [
  ...(editable
    ? [{ label: text.import, icon: 'upload' as const, onSelect: () => open('import') }]
    : []),
  { label: text.copyId, icon: 'copy', onSelect: () => navigator.clipboard.writeText(id) },
  { label: text.exportCsv, icon: 'download', onSelect: () => runExport('csv') },
  { label: text.exportJson, icon: 'download', onSelect: () => runExport('json') },
  { label: text.exportLines, icon: 'download', onSelect: () => runExport('jsonl') },
  ...(editable
    ? [{ label: text.edit, icon: 'edit' as const, onSelect: () => open('details') }]
    : []),
  ...(may('project.admin')
    ? [
        {
          label: text.delete,
          icon: 'trash' as const,
          danger: true,
          onSelect: () => open('delete'),
        },
      ]
    : []),
]

function TableTabs({
  project,
  table,
  editable,
  onOpen,
  onSaved,
}: {
  readonly project: string
  readonly table: Table
  readonly editable: boolean
  onOpen(dialog: Open): void
  onSaved(): void
}) {
  return (
    <Tabs
      label={text.parts}
      tabs={[
        {
          id: 'rows',
          label: text.rows,
          content: () => (
            <RowsPart
              project={project}
              table={table}
              editable={editable}
              onInsert={() => onOpen('insert')}
              onImport={() => onOpen('import')}
            />
          ),
        },
        {
          id: 'columns',
          label: text.schema,
          content: () => (
            <UntouchedForm record={table}>
              {(one, onSettled) => (
                <SchemaPart
                  project={project}
                  table={one}
                  editable={editable}
                  onSaved={onSaved}
                  onSettled={onSettled}
                />
              )}
            </UntouchedForm>
          ),
        },
        {
          id: 'statistics',
          label: text.statistics,
          content: () => <StatsPart project={project} id={table.id} />,
        },
      ]}
    />
  )
}
