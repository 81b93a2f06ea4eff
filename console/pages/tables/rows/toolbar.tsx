/** The toolbar above the rows of a table: search, filters, visible columns and saved views. */
import { useEffect, useState } from 'preact/hooks'
import type { Column, TableSchema } from '../../../../protocol/tables/schema.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { SearchField, SelectField, TextField } from '../../../design/field.tsx'
import { currentUrl, setQuery } from '../../../router/router.ts'
import { Views } from '../../../views/views.tsx'
import { tablesText as text } from '../text.ts'
import { ColumnsDialog } from './columns.tsx'
import {
  type AskedRows,
  type Condition,
  fieldsOf,
  type Operator,
  operatorsOf,
  parametersOf,
  viewOf,
  writeConditions,
} from './filter.ts'

const MODES = [
  { value: 'keyword', label: text.keyword },
  { value: 'semantic', label: text.semantic },
  { value: 'hybrid', label: text.hybrid },
]
/** Delay between the last key press and the search. */
const PAUSE_MS = 300

/**
 * Shows the toolbar.
 * @param props.asked the query in the URL; `columns` contains the visible columns.
 */
export function Toolbar({
  project,
  id,
  schema,
  asked,
  columns,
}: {
  readonly project: string
  readonly id: string
  readonly schema: TableSchema
  readonly asked: AskedRows
  readonly columns: readonly Column[]
}) {
  const { conditions, faults } = asked
  const { query } = currentUrl.value
  const [open, setOpen] = useState(conditions.length > 0)
  const [choosing, setChoosing] = useState(false)
  const change = (list: readonly Condition[]): void =>
    setQuery({ filter: writeConditions(list), row: '' })
  const active = conditions.filter((_, index) => !faults.has(index)).length
  const fields = fieldsOf(schema)
  const add = (): void => {
    const [first] = fields
    setOpen(true)
    if (first) change([...conditions, { field: first.name, operator: 'eq', text: '' }])
  }
  const searching = query.get('q') ?? ''
  return (
    <>
      <div class="row">
        <Search value={searching} />
        {searching !== '' && (
          <SelectField
            label={text.mode}
            unlabelled
            value={query.get('mode') ?? 'keyword'}
            choices={MODES}
            onValue={(mode) => setQuery({ mode: mode === 'keyword' ? '' : mode })}
          />
        )}
        <Button
          icon="filter"
          pressed={open}
          onClick={() => (conditions.length === 0 ? add() : setOpen(!open))}
        >
          {active > 0 ? text.filterCount(active) : text.filters}
        </Button>
        <IconButton icon="tables" label={text.columns} onClick={() => setChoosing(true)} />
        <Views
          project={project}
          list="rows"
          of={({ filter }) => filter?.['table_id'] === id}
          none={text.allRows}
          current={query.get('view') ?? ''}
          shown={viewOf(id, asked, query.get('columns') ?? '')}
          onApply={(view, saved) =>
            saved ? setQuery({ view: view?.id }) : setQuery(parametersOf(view), { push: true })
          }
        />
      </div>
      {choosing && (
        <ColumnsDialog
          columns={schema.columns}
          chosen={columns}
          onClose={() => setChoosing(false)}
        />
      )}
      {open && conditions.length > 0 && (
        <section class="card conditions" aria-label={text.filters}>
          <ul>
            {conditions.map((one, index) => (
              <li key={index}>
                <ConditionLine
                  schema={schema}
                  of={one}
                  fault={faults.get(index)}
                  onChange={(next) =>
                    change(conditions.map((other, at) => (at === index ? next : other)))
                  }
                  onRemove={() => change(conditions.filter((_, at) => at !== index))}
                />
              </li>
            ))}
          </ul>
          <div class="row">
            <Button kind="quiet" icon="plus" onClick={add}>
              {text.addCondition}
            </Button>
            <Button kind="quiet" onClick={() => change([])}>
              {text.clearFilters}
            </Button>
          </div>
        </section>
      )}
    </>
  )
}

function Search({ value }: { readonly value: string }) {
  const [typed, setTyped] = useState(value)
  useEffect(() => setTyped(value), [value])
  useEffect(() => {
    if (typed === value) return
    const later = setTimeout(() => setQuery({ q: typed }), PAUSE_MS)
    return () => clearTimeout(later)
  }, [typed])
  return <SearchField label={text.search} value={typed} onValue={setTyped} />
}

function ConditionLine({
  schema,
  of,
  fault,
  onChange,
  onRemove,
}: {
  readonly schema: TableSchema
  readonly of: Condition
  readonly fault: string | undefined
  readonly onChange: (next: Condition) => void
  readonly onRemove: () => void
}) {
  const fields = fieldsOf(schema)
  const type = fields.find(({ name }) => name === of.field)?.type ?? 'any'
  const operators = operatorsOf(type)
  const choose = (field: string): void => {
    const next = fields.find(({ name }) => name === field)?.type ?? 'any'
    const allowed = operatorsOf(next)
    const operator = allowed.includes(of.operator) ? of.operator : (allowed[0] ?? 'set')
    onChange({ field, operator, text: next === type ? of.text : '' })
  }
  const needsValue = of.operator !== 'set' && of.operator !== 'unset'
  return (
    <div class="condition">
      <SelectField
        label={text.field}
        unlabelled
        value={of.field}
        choices={[
          ...(fields.some(({ name }) => name === of.field)
            ? []
            : [{ value: of.field, label: of.field }]),
          ...fields.map(({ name }) => ({ value: name, label: name })),
        ]}
        onValue={choose}
      />
      <SelectField
        label={text.operator}
        unlabelled
        value={of.operator}
        choices={operators.map((value) => ({ value, label: text[value] }))}
        onValue={(operator) => onChange({ ...of, operator: operator as Operator })}
      />
      {!needsValue ? (
        <span />
      ) : type === 'boolean' ? (
        <SelectField
          label={text.value}
          unlabelled
          value={of.text}
          choices={[
            { value: '', label: '' },
            { value: 'true', label: text.yes },
            { value: 'false', label: text.no },
          ]}
          onValue={(next) => onChange({ ...of, text: next })}
        />
      ) : (
        <TextField
          label={text.value}
          unlabelled
          placeholder={type === 'date' ? text.dateHint : text.value}
          value={of.text}
          fault={of.text === '' ? undefined : fault}
          onValue={(next) => onChange({ ...of, text: next })}
        />
      )}
      <IconButton icon="close" label={text.removeCondition} onClick={onRemove} />
    </div>
  )
}
