/** The dialogs of one row: a new row, and an existing row with all its values. */

import { useEffect, useState } from 'preact/hooks'
import { isolate } from '../../../client/isolate.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { Column, TableSchema } from '../../../protocol/tables/schema.ts'
import { call } from '../../api/client.ts'
import { type FaultOf, useRefusal } from '../../api/refusal.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton, CopyCall } from '../../design/copy.tsx'
import { SelectField, TextArea, TextField } from '../../design/field.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Failure, Skeleton } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { Tree } from '../../design/tree.tsx'
import type { TableRow } from './rows/rows.ts'
import { type Conflict, saveRow } from './rows/save.ts'
import { tablesText as text } from './text.ts'
import { editedText, typedValue } from './values.ts'

type Texts = Readonly<Record<string, string>>

/** Returns the new values of the columns with a changed text, or the faults of these texts. */
function changesOf(
  schema: TableSchema,
  texts: Texts,
  before: Texts,
): { readonly changes: Record<string, unknown> } | { readonly faults: Texts } {
  const changes: Record<string, unknown> = {}
  const faults: Record<string, string> = {}
  for (const column of schema.columns) {
    const value = getOwn(texts, column.name) ?? ''
    if (value === (getOwn(before, column.name) ?? '')) continue
    const typed = typedValue(value, column)
    if ('fault' in typed) faults[column.name] = typed.fault
    else changes[column.name] = typed.value
  }
  return Object.keys(faults).length > 0 ? { faults } : { changes }
}

/** Returns whether at least one fault of an error is shown next to the field of a column. */
const isShown = (faultOf: FaultOf, { columns }: TableSchema): boolean =>
  columns.some(({ name }) => faultOf(`data.${name}`) !== undefined)

function RowField({
  column,
  value,
  fault,
  disabled,
  onValue,
}: {
  readonly column: Column
  readonly value: string
  readonly fault: string | undefined
  readonly disabled: boolean
  readonly onValue: (value: string) => void
}) {
  const { name, type, required, description } = column
  const hint = [type === 'date' ? text.dateHint : type, description && isolate(description)]
    .filter(Boolean)
    .join(' · ')
  const common = {
    label: required ? `${name} *` : name,
    hint,
    fault,
    value,
    onValue,
    disabled,
  }
  if (type === 'boolean')
    return (
      <SelectField
        {...common}
        choices={[
          { value: '', label: text.noValue },
          { value: 'true', label: text.yes },
          { value: 'false', label: text.no },
        ]}
      />
    )
  return type === 'number' || type === 'date' ? (
    <TextField {...common} />
  ) : (
    <TextArea {...common} rows={type === 'object' || type === 'array' ? 4 : 1} />
  )
}

/** Shows the dialog for a new row, filled with the defaults of the columns. */
export function NewRow({
  project,
  id,
  schema,
  onClose,
}: {
  readonly project: string
  readonly id: string
  readonly schema: TableSchema
  readonly onClose: () => void
}) {
  const [standard] = useState(() =>
    Object.fromEntries(
      schema.columns.map(({ name, type, default: value }) => [name, editedText(value, type)]),
    ),
  )
  const [texts, setTexts] = useState<Texts>(standard)
  const [faults, setFaults] = useState<Texts>({})
  const { error, faultOf, attempt } = useRefusal()
  const insert = async (): Promise<void> => {
    const missing = schema.columns.filter(
      ({ name, required }) => required && (getOwn(texts, name) ?? '') === '',
    )
    const made = changesOf(schema, texts, standard)
    const found = {
      ...Object.fromEntries(missing.map(({ name }) => [name, text.isRequired])),
      ...('faults' in made ? made.faults : {}),
    }
    setFaults(found)
    if ('faults' in made || missing.length > 0) return
    await attempt(async () => {
      await call('row.insert', { project, id, data: made.changes })
      onClose()
    })
  }
  return (
    <Dialog title={text.insertTitle} wide onClose={onClose}>
      <div class="row-form">
        {schema.columns.map((column) => (
          <RowField
            key={column.name}
            column={column}
            value={getOwn(texts, column.name) ?? ''}
            disabled={false}
            fault={getOwn(faults, column.name) ?? faultOf(`data.${column.name}`)}
            onValue={(value) => setTexts({ ...texts, [column.name]: value })}
          />
        ))}
      </div>
      {error && !isShown(faultOf, schema) && <Failure error={error} />}
      <DialogActions onClose={onClose} action={text.insert} onClick={insert} />
    </Dialog>
  )
}

/** Shows the dialog of an existing row, read-only unless `editable`. */
export function OpenRow({
  project,
  id,
  rowId,
  schema,
  editable,
  onSaved,
  onConflict,
  onDelete,
  onClose,
}: {
  readonly project: string
  readonly id: string
  readonly rowId: string
  readonly schema: TableSchema
  readonly editable: boolean
  readonly onSaved: (row: TableRow) => void
  readonly onConflict: (conflict: Conflict) => void
  readonly onDelete: () => void
  readonly onClose: () => void
}) {
  const input = { project, id, row_id: rowId }
  const [row, setRow] = useState<TableRow>()
  const { error, faultOf, attempt } = useRefusal()
  const [texts, setTexts] = useState<Texts>({})
  const [faults, setFaults] = useState<Texts>({})
  const before = (of: TableRow): Texts =>
    Object.fromEntries(
      schema.columns.map(({ name, type }) => [name, editedText(getOwn(of.data, name), type)]),
    )
  useEffect(() => {
    void attempt(async () => {
      const found = await call('row.get', input)
      setRow(found)
      setTexts(before(found))
    })
  }, [rowId])
  const save = async (): Promise<void> => {
    if (!row) return
    const made = changesOf(schema, texts, before(row))
    setFaults('faults' in made ? made.faults : {})
    if ('faults' in made) return
    if (Object.keys(made.changes).length === 0) return onClose()
    await attempt(async () => {
      const outcome = await saveRow(project, row, made.changes)
      if ('saved' in outcome) onSaved(outcome.saved)
      else onConflict(outcome.conflict)
      onClose()
    })
  }
  const declared = new Set(schema.columns.map(({ name }) => name))
  const further = Object.entries(row?.data ?? {}).filter(([name]) => !declared.has(name))
  return (
    <Dialog title={text.row} wide onClose={onClose}>
      {error && !isShown(faultOf, schema) && <Failure error={error} />}
      {!row && !error && <Skeleton />}
      {row && (
        <>
          <div class="row small soft">
            <span class="mono user-text">{row.id}</span>
            <CopyButton value={row.id} />
            <span>
              {text.version} {row.version}
            </span>
            <span>
              {text.createdAt} <Time at={row.created_at} />
            </span>
            <span>
              {text.updatedAt} <Time at={row.updated_at} />
            </span>
            <CopyCall name="row.get" input={input} />
          </div>
          <div class="row-form">
            {schema.columns.map((column) => (
              <RowField
                key={column.name}
                column={column}
                value={getOwn(texts, column.name) ?? ''}
                disabled={!editable}
                fault={getOwn(faults, column.name) ?? faultOf(`data.${column.name}`)}
                onValue={(value) => setTexts({ ...texts, [column.name]: value })}
              />
            ))}
          </div>
          {further.length > 0 && (
            <>
              <h3>{text.undeclared}</h3>
              <Tree value={Object.fromEntries(further)} />
            </>
          )}
        </>
      )}
      <div class="actions">
        {row && editable && (
          <Button danger icon="trash" onClick={onDelete}>
            {text.deleteRow}
          </Button>
        )}
        <Button onClick={onClose}>{editable ? text.cancel : text.close}</Button>
        {row && editable && (
          <Button kind="primary" onClick={save}>
            {text.save}
          </Button>
        )}
      </div>
    </Dialog>
  )
}
