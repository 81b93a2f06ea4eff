/** The editor of columns, for new tables and for existing ones. */

import type { Column, ColumnType, TableSchema } from '../../../protocol/tables/schema.ts'
import { typeNames } from '../../../protocol/tables/values.ts'
import type { ApiError } from '../../api/client.ts'
import { Button, IconButton } from '../../design/button.tsx'
import { Checkbox, SelectField, TextField } from '../../design/field.tsx'
import { Badge } from '../../design/states.tsx'
import { tablesText as text } from './text.ts'
import { editedText, typedValue } from './values.ts'

/** A column that is being edited. `standard` is its default as text. */
export interface EditedColumn extends Omit<Column, 'default'> {
  readonly key: number
  readonly standard: string
  /** Whether the table has the column already. */
  readonly known: boolean
}
let last = 0
/** Returns a column in the form that the editor uses. */
export const editedColumn = (column: Column, known: boolean): EditedColumn => {
  const { default: value, ...rest } = column
  return { ...rest, key: ++last, standard: editedText(value, column.type), known }
}
/** Returns edited columns as columns of a schema, or the faults of their defaults by index. */
export function columnsOf(
  edited: readonly EditedColumn[],
): { readonly columns: Column[] } | { readonly faults: ReadonlyMap<number, string> } {
  const faults = new Map<number, string>()
  const columns = edited.map(({ key: _key, standard, known: _known, ...column }, index): Column => {
    const typed = typedValue(standard, { type: column.type })
    if ('fault' in typed) faults.set(index, typed.fault)
    const { description, deprecated, required, ...rest } = column
    return {
      ...rest,
      ...(required && { required }),
      ...(deprecated && { deprecated }),
      ...(description && { description }),
      ...('value' in typed && typed.value !== null && { default: typed.value }),
    }
  })
  return faults.size > 0 ? { faults } : { columns }
}

const types = (Object.keys(typeNames) as ColumnType[]).map((value) => ({ value, label: value }))

/** Edits the columns of a schema. */
export function ColumnsEditor({
  columns,
  onColumns,
  identity,
  secondary,
  isEmpty,
  faults,
  error,
  disabled = false,
}: {
  readonly columns: readonly EditedColumn[]
  readonly onColumns: (columns: readonly EditedColumn[]) => void
  readonly identity: string
  readonly secondary?: TableSchema['secondary_key_column']
  /** Whether the table has no rows. Only then can types of existing columns change. */
  readonly isEmpty: boolean
  readonly faults?: ReadonlyMap<number, string> | undefined
  readonly error?: ApiError | undefined
  readonly disabled?: boolean
}) {
  const change = (index: number, changes: Partial<EditedColumn>): void =>
    onColumns(columns.map((one, at) => (at === index ? { ...one, ...changes } : one)))
  const faultOf = (index: number, member: string): string | undefined =>
    error?.fields.find(({ field }) => field === `schema.columns[${index}].${member}`)?.message
  return (
    <div class="stack close">
      <ul class="column-list">
        {columns.map((column, index) => {
          const isKey = column.name === identity || column.name === secondary
          const at = index + 1
          return (
            <li key={column.key} class="column-line">
              <div class="column-badges">
                {column.known && column.name === identity && (
                  <Badge tone="accent">{text.identityBadge}</Badge>
                )}
                {column.known && column.name === secondary && <Badge>{text.secondaryBadge}</Badge>}
              </div>
              <TextField
                label={text.columnName(at)}
                unlabelled
                placeholder={text.name}
                value={column.name}
                disabled={disabled || column.known}
                maxLength={64}
                fault={faultOf(index, 'name')}
                onValue={(name) => change(index, { name })}
              />
              <SelectField
                label={text.columnType(at)}
                unlabelled
                value={column.type}
                choices={types}
                disabled={disabled || (column.known && (isKey || !isEmpty))}
                fault={faultOf(index, 'type')}
                onValue={(type) => change(index, { type: type as ColumnType })}
              />
              <TextField
                label={text.columnDefault(at)}
                unlabelled
                placeholder={text.default}
                value={column.standard}
                disabled={disabled || column.name === identity}
                fault={faults?.get(index) ?? faultOf(index, 'default')}
                onValue={(standard) => change(index, { standard })}
              />
              <TextField
                label={text.columnDescription(at)}
                unlabelled
                placeholder={text.description}
                value={column.description ?? ''}
                disabled={disabled}
                maxLength={1000}
                onValue={(description) => change(index, { description })}
              />
              <div class="column-flags small">
                <Checkbox
                  label={
                    <>
                      {text.required}
                      <span class="unseen">: {text.columnRequired(at)}</span>
                    </>
                  }
                  checked={column.required ?? false}
                  disabled={disabled || column.known || column.name === identity}
                  onChecked={(required) => change(index, { required })}
                />
                <Checkbox
                  label={
                    <>
                      {text.deprecated}
                      <span class="unseen">: {text.columnDeprecated(at)}</span>
                    </>
                  }
                  checked={column.deprecated ?? false}
                  disabled={disabled}
                  onChecked={(deprecated) => change(index, { deprecated })}
                />
              </div>
              <IconButton
                icon="trash"
                label={text.removeColumn(column.name || String(at))}
                disabled={disabled || isKey || columns.length === 1}
                onClick={() => onColumns(columns.filter((_, other) => other !== index))}
              />
            </li>
          )
        })}
      </ul>
      {!disabled && (
        <div class="row">
          <Button
            icon="plus"
            onClick={() =>
              onColumns([...columns, editedColumn({ name: '', type: 'string' }, false)])
            }
          >
            {text.addColumn}
          </Button>
        </div>
      )}
    </div>
  )
}
