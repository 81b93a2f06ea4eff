/** The parts of a table next to its rows: its columns, its statistics, and its details. */
import { useState } from 'preact/hooks'
import type { Table } from '../../../protocol/tables/schema.ts'
import { useQuery } from '../../api/query.ts'
import { useRefusal } from '../../api/refusal.ts'
import { useSave } from '../../api/save.ts'
import { Button } from '../../design/button.tsx'
import { TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Badge, Failure, Show } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { tagLines, tagsOfLines } from '../../form/tag-lines.ts'
import { useChanged, useLeaveQuestion } from '../../form/unsaved.ts'
import { formatBytes, formatNumber } from '../../text/format.ts'
import { ColumnsEditor, columnsOf, type EditedColumn, editedColumn } from './columns.tsx'
import { tablesText as text } from './text.ts'

/** The columns of a table, and their editor for people who may change them. */
export function SchemaPart({
  project,
  table,
  editable,
  onSaved,
  onSettled,
}: {
  readonly project: string
  readonly table: Table
  readonly editable: boolean
  readonly onSaved: () => void
  /** Called after the columns were saved, or their changes were discarded. */
  readonly onSettled: () => void
}) {
  const { id, schema } = table
  const stats = useQuery('table.stats', { project, id })
  const start = (): readonly EditedColumn[] => schema.columns.map((one) => editedColumn(one, true))
  const [columns, setColumns] = useState(start)
  const [dirty, setDirty] = useState(false)
  const [faults, setFaults] = useState<ReadonlyMap<number, string>>()
  const { error, attempt, clear } = useRefusal()
  const update = useSave(table)
  const discard = (): void => {
    setColumns(start())
    setDirty(false)
    setFaults(undefined)
    clear()
    onSettled()
  }
  useLeaveQuestion(dirty)
  const save = async (): Promise<void> => {
    const made = columnsOf(columns)
    setFaults('faults' in made ? made.faults : undefined)
    if ('faults' in made) return
    await attempt(async () => {
      await update('table.update', {
        project,
        id,
        schema: { ...schema, columns: made.columns },
      })
      setDirty(false)
      showDone(text.saved)
      onSettled()
      onSaved()
    })
  }
  return (
    <div class="stack">
      <p class="soft small">{text.schemaHint}</p>
      <ColumnsEditor
        columns={columns}
        onColumns={(next) => {
          setColumns(next)
          setDirty(true)
        }}
        identity={schema.identity_column}
        secondary={schema.secondary_key_column}
        isEmpty={stats.state.value.data?.row_count === 0}
        faults={faults}
        error={error}
        disabled={!editable}
      />
      {schema.open && <Badge>{text.open}</Badge>}
      {error && <Failure error={error} />}
      {dirty && (
        <div class="row">
          <Button kind="primary" onClick={save}>
            {text.saveColumns}
          </Button>
          <Button onClick={discard}>{text.discard}</Button>
        </div>
      )}
    </div>
  )
}

/** The statistics of a table. */
export function StatsPart({ project, id }: { readonly project: string; readonly id: string }) {
  const { state, reload } = useQuery('table.stats', { project, id }, { kinds: ['table'], id })
  return (
    <Show of={state.value} retry={reload}>
      {(stats) => (
        <dl class="facts">
          <dt>{text.rowCount}</dt>
          <dd>{formatNumber(stats.row_count)}</dd>
          <dt>{text.dataSize}</dt>
          <dd>{formatBytes(stats.approx_data_bytes)}</dd>
          <dt>{text.indexSize}</dt>
          <dd>{formatBytes(stats.approx_index_bytes)}</dd>
          <dt>{text.searchIndex}</dt>
          <dd>{stats.search_index_present ? text.present : text.absent}</dd>
          {stats.oldest_row_created_at && (
            <>
              <dt>{text.oldest}</dt>
              <dd>
                <Time at={stats.oldest_row_created_at} />
              </dd>
            </>
          )}
          {stats.newest_row_updated_at && (
            <>
              <dt>{text.newest}</dt>
              <dd>
                <Time at={stats.newest_row_updated_at} />
              </dd>
            </>
          )}
          <dt>{text.measured}</dt>
          <dd>
            <Time at={stats.generated_at} relative />
          </dd>
        </dl>
      )}
    </Show>
  )
}

/** The dialog that changes the name, the descriptions and the tags. */
export function DetailsDialog({
  project,
  table,
  onClose,
  onSaved,
}: {
  readonly project: string
  readonly table: Table
  readonly onClose: () => void
  readonly onSaved: () => void
}) {
  const [name, setName] = useState(table.name)
  const [description, setDescription] = useState(table.description ?? '')
  const [instructions, setInstructions] = useState(table.instructions ?? '')
  const [tags, setTags] = useState(tagLines(table.tags))
  const { attempt, errorBeside, faultOf } = useRefusal()
  const update = useSave(table)
  const { isChanged } = useChanged([name, description, instructions, tags])
  const save = (): Promise<void> =>
    attempt(async () => {
      const changes = { name, description, instructions, tags: tagsOfLines(tags) }
      await update('table.update', { project, id: table.id, ...changes })
      onSaved()
      onClose()
    })
  const remaining = errorBeside('name', 'description', 'instructions', 'tags')
  return (
    <Dialog title={text.edit} onClose={onClose}>
      <TextField
        label={text.name}
        hint={text.nameHint}
        value={name}
        onValue={setName}
        fault={faultOf('name')}
        maxLength={64}
      />
      <TextArea
        label={text.description}
        value={description}
        onValue={setDescription}
        fault={faultOf('description')}
        maxLength={1000}
      />
      <TextArea
        label={text.instructions}
        hint={text.instructionsHint}
        value={instructions}
        onValue={setInstructions}
        fault={faultOf('instructions')}
        maxLength={2000}
      />
      <TextArea
        label={text.tags}
        hint={text.tagsHint}
        value={tags}
        onValue={setTags}
        fault={faultOf('tags')}
      />
      {remaining && <Failure error={remaining} />}
      <DialogActions action={text.save} disabled={!isChanged} onClick={save} onClose={onClose} />
    </Dialog>
  )
}
