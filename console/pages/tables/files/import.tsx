/** The dialog that imports rows: choose a file, map its columns, and watch the progress. */

import { useMemo, useRef, useState } from 'preact/hooks'
import type { Table } from '../../../../protocol/tables/schema.ts'
import { Button } from '../../../design/button.tsx'
import { SelectField } from '../../../design/field.tsx'
import { Dialog, DialogActions } from '../../../design/overlay.tsx'
import { Failure, Notice } from '../../../design/states.tsx'
import { useFileDrop } from '../../../files/drop.ts'
import { formatBytes } from '../../../text/format.ts'
import { tablesText as text } from '../text.ts'
import { MappingTable } from './mapping.tsx'
import {
  type CsvFile,
  type ImportPlan,
  type Mapping,
  NEW_COLUMN,
  newColumns,
  planImport,
  readFile,
  suggested,
  textOf,
} from './plan.ts'
import { type Progress, useImport } from './use-import.ts'

/** Maximum size of an imported file in bytes. */
const MAX_BYTES = 64 * 1_048_576
/** Maximum number of faults that are listed for a file. */
const MAX_SHOWN_FAULTS = 5

export function ImportDialog({
  project,
  table,
  onClose,
}: {
  readonly project: string
  readonly table: Table
  readonly onClose: () => void
}) {
  const [file, setFile] = useState<CsvFile>()
  const [fault, setFault] = useState<string>()
  const choose = async (chosen: File | undefined): Promise<void> => {
    if (!chosen) return
    if (chosen.size > MAX_BYTES) return setFault(text.fileTooLarge(formatBytes(MAX_BYTES)))
    const content = textOf(await chosen.arrayBuffer())
    if (content === undefined) return setFault(text.notUtf8)
    const read = readFile(chosen.name, content)
    setFault(read ? undefined : text.noRecords)
    setFile(read)
  }
  return (
    <Dialog title={text.importTitle} wide onClose={onClose}>
      {fault !== undefined && <Notice tone="bad">{fault}</Notice>}
      {file ? (
        <FileImport project={project} table={table} file={file} onClose={onClose} />
      ) : (
        <Chooser onFile={choose} />
      )}
    </Dialog>
  )
}

function Chooser({ onFile }: { readonly onFile: (file: File | undefined) => Promise<void> }) {
  const picker = useRef<HTMLInputElement>(null)
  const { over, target } = useFileDrop(true, ([file]) => void onFile(file))
  return (
    <div class={over ? 'file-drop over' : 'file-drop'} {...target}>
      <input
        ref={picker}
        type="file"
        accept=".csv,.tsv,text/csv"
        hidden
        aria-label={text.chooseFile}
        onChange={({ currentTarget }) => void onFile(currentTarget.files?.[0])}
      />
      <Button kind="primary" icon="upload" onClick={() => picker.current?.click()}>
        {text.chooseFile}
      </Button>
      <p class="soft">{text.dropFile}</p>
    </div>
  )
}

/** The form that maps the columns of a file, and the progress of the import after it. */
function FileImport({
  project,
  table,
  file,
  onClose,
}: {
  readonly project: string
  readonly table: Table
  readonly file: CsvFile
  readonly onClose: () => void
}) {
  const { schema } = table
  const candidates = useMemo(() => newColumns(file, schema), [file])
  const [mapping, setMapping] = useState<Mapping>(() => suggested(file, schema))
  const [update, setUpdate] = useState(false)
  const { progress, run, stop } = useImport(project, table)
  const added = new Map([...candidates].filter(([index]) => mapping[index] === NEW_COLUMN))
  const plan = useMemo(
    () => planImport(file, mapping, schema, added, update),
    [file, mapping.join('\n'), update],
  )
  const missing = !mapping.includes(schema.identity_column)
  const twice = targetUsedTwice(mapping)
  if (progress) return <ImportProgress progress={progress} onStop={stop} onClose={onClose} />
  return (
    <>
      <p class="user-text">{text.fileRows(file.name, file.records.length)}</p>
      <MappingTable
        file={file}
        schema={schema}
        candidates={candidates}
        mapping={mapping}
        onMapping={setMapping}
      />
      <SelectField
        label={text.existing}
        value={update ? 'update' : ''}
        choices={[
          { value: '', label: text.refuseExisting },
          { value: 'update', label: text.updateExisting },
        ]}
        onValue={(value) => setUpdate(value === 'update')}
      />
      {missing && <Notice tone="warn">{text.needsIdentity(schema.identity_column)}</Notice>}
      {twice !== undefined && <Notice tone="warn">{text.twice(twice)}</Notice>}
      {!missing && plan.faults.length > 0 && <InvalidRecords faults={plan.faults} />}
      <DialogActions
        onClose={onClose}
        action={text.importRows(plan.rows.length)}
        disabled={missing || twice !== undefined || plan.rows.length === 0}
        onClick={() => run({ rows: plan.rows, added: [...added.values()], update })}
      />
    </>
  )
}

/** Returns a column of the table to which several columns of the file are mapped, if there is one. */
const targetUsedTwice = (mapping: Mapping): string | undefined =>
  mapping.find(
    (name, index) => name !== '' && name !== NEW_COLUMN && mapping.indexOf(name) !== index,
  )

/** Lists the first records that cannot be imported. */
const InvalidRecords = ({ faults }: { readonly faults: ImportPlan['faults'] }) => (
  <Notice tone="warn">
    <p>{text.invalid(faults.length)}</p>
    {faults.slice(0, MAX_SHOWN_FAULTS).map(({ line, message }) => (
      <p key={line} class="small user-text">
        {message}
      </p>
    ))}
    <p>{text.invalidHint}</p>
  </Notice>
)

function ImportProgress({
  progress: { done, total, running, error },
  onStop,
  onClose,
}: {
  readonly progress: Progress
  readonly onStop: () => void
  readonly onClose: () => void
}) {
  return (
    <>
      <div role="status" class="stack close">
        <p>{text.imported(done, total)}</p>
        <progress aria-label={text.progress} value={done} max={Math.max(1, total)} />
      </div>
      {error && <Failure error={error} />}
      {!running && !error && done === total && <Notice tone="good">{text.importDone(done)}</Notice>}
      <div class="actions">
        {running ? (
          <Button onClick={onStop}>{text.stop}</Button>
        ) : (
          <Button kind="primary" onClick={onClose}>
            {text.close}
          </Button>
        )}
      </div>
    </>
  )
}
