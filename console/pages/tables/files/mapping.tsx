/** The table in which each column of a file gets a column of the table. */
import type { Column, TableSchema } from '../../../../protocol/tables/schema.ts'
import { SelectField } from '../../../design/field.tsx'
import { designText } from '../../../design/text.ts'
import { tablesText as text } from '../text.ts'
import { type CsvFile, type Mapping, NEW_COLUMN } from './plan.ts'

/** Number of records of which a sample is shown, and maximum length of each of their values. */
const SAMPLE = { records: 3, length: 60 } as const

/** Returns the first values of a column of the file. */
const sampleOf = ({ records }: CsvFile, index: number): string =>
  records
    .slice(0, SAMPLE.records)
    .map(({ fields }) => (fields[index] ?? '–').slice(0, SAMPLE.length))
    .join(' · ')

/**
 * Shows the columns of a file with their targets.
 * @param props.candidates the columns that the file could add, by position in the file.
 */
export const MappingTable = ({
  file,
  schema,
  candidates,
  mapping,
  onMapping,
}: {
  readonly file: CsvFile
  readonly schema: TableSchema
  readonly candidates: ReadonlyMap<number, Column>
  readonly mapping: Mapping
  readonly onMapping: (mapping: Mapping) => void
}) => (
  <div class="table-frame">
    <table class="table">
      <caption class="unseen">{text.mapping}</caption>
      <thead>
        <tr>
          <th scope="col">{text.fileColumn}</th>
          <th scope="col">{text.sample}</th>
          <th scope="col">{text.tableColumn}</th>
        </tr>
      </thead>
      <tbody>
        {file.head.map((name, index) => (
          <tr key={index}>
            <th scope="row" class="user-text">
              {name || index + 1}
            </th>
            <td class="soft small user-text">{sampleOf(file, index)}</td>
            <td>
              <SelectField
                label={text.into(name || String(index + 1))}
                unlabelled
                value={mapping[index] ?? ''}
                choices={targetsOf(schema, candidates.get(index))}
                onValue={(target) => onMapping(mapping.with(index, target))}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

/** Returns the targets from which a person can choose for a column of the file. */
const targetsOf = (schema: TableSchema, candidate: Column | undefined) => [
  { value: '', label: text.skip },
  ...schema.columns.map(({ name, type }) => ({
    value: name,
    label: designText.detailed(name, type),
  })),
  ...(candidate
    ? [{ value: NEW_COLUMN, label: text.newColumn(candidate.name, candidate.type) }]
    : []),
]
