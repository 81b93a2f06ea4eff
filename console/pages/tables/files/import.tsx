/** The dialog that imports rows: choose a file, map its columns, and watch the progress. */

import { useMemo, useRef, useState } from 'preact/hooks'
import type { Table } from '../../../../protocol/tables/schema.ts'
import { ApiError, call } from '../../../api/client.ts'
import { Button } from '../../../design/button.tsx'
import { SelectField } from '../../../design/field.tsx'
import { Dialog, DialogActions } from '../../../design/overlay.tsx'
import { Failure, Notice } from '../../../design/states.tsx'
import { designText } from '../../../design/text.ts'
import { useFileDrop } from '../../../files/drop.ts'
import { formatBytes } from '../../../text/format.ts'
import { tablesText as text } from '../text.ts'
import {
  bulksOf,
  type CsvFile,
  type Mapping,
  NEW_COLUMN,
  newColumns,
  type PlannedRow,
  planImport,
  readFile,
  suggested,
  textOf,
  updatesOf,
} from './plan.ts'

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
        <Mapped project={project} table={table} file={file} onClose={onClose} />
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

/** The progress of an import, in rows. */
interface Progress {
  readonly done: number
  readonly total: number
  readonly running: boolean
  readonly error?: ApiError
}

function Mapped({
  project,
  table: { id, schema },
  file,
  onClose,
}: {
  readonly project: string
  readonly table: Table
  readonly file: CsvFile
  readonly onClose: () => void
}) {
  const candidates = useMemo(() => newColumns(file, schema), [file])
  const [mapping, setMapping] = useState<Mapping>(() => suggested(file, schema))
  const [update, setUpdate] = useState(false)
  const [progress, setProgress] = useState<Progress>()
  const stop = useRef<AbortController | undefined>(undefined)
  const added = new Map([...candidates].filter(([index]) => mapping[index] === NEW_COLUMN))
  const plan = useMemo(
    () => planImport(file, mapping, schema, added, update),
    [file, mapping.join('\n'), update],
  )
  const twice = mapping.find(
    (name, index) => name !== '' && name !== NEW_COLUMN && mapping.indexOf(name) !== index,
  )
  const missing = !mapping.includes(schema.identity_column)
  const run = async (): Promise<void> => {
    const control = new AbortController()
    stop.current = control
    let done = 0
    const total = plan.rows.length
    const advance = (count: number): void => {
      done += count
      setProgress({ done, total, running: true })
    }
    advance(0)
    try {
      if (added.size > 0)
        await call('table.update', {
          project,
          id,
          schema: { ...schema, columns: [...schema.columns, ...added.values()] },
        })
      if (update) await upsert(plan.rows, control.signal, advance)
      else await insert(plan.rows, control.signal, advance)
      setProgress({ done, total, running: false })
    } catch (error) {
      if (control.signal.aborted) return setProgress({ done, total, running: false })
      if (!(error instanceof ApiError)) throw error
      setProgress({ done, total, running: false, error })
    }
  }
  const insert = async (
    rows: readonly PlannedRow[],
    signal: AbortSignal,
    advance: (count: number) => void,
  ): Promise<void> => {
    for (const bulk of bulksOf(rows)) {
      signal.throwIfAborted()
      try {
        await call('row.bulk', { project, id, rows: bulk.map(({ data }) => data) }, { signal })
      } catch (error) {
        throw located(error, bulk)
      }
      advance(bulk.length)
    }
  }
  const upsert = async (
    rows: readonly PlannedRow[],
    signal: AbortSignal,
    advance: (count: number) => void,
  ): Promise<void> => {
    for (const group of updatesOf(rows, schema.identity_column)) {
      signal.throwIfAborted()
      await Promise.all(
        group.map(async (row) => {
          try {
            await call('row.upsert', { project, id, data: row.data }, { signal })
          } catch (error) {
            throw located(error, [row])
          }
          advance(1)
        }),
      )
    }
  }
  if (progress) {
    const { done, total, running, error } = progress
    return (
      <>
        <div role="status" class="stack close">
          <p>{text.imported(done, total)}</p>
          <progress aria-label={text.progress} value={done} max={Math.max(1, total)} />
        </div>
        {error && <Failure error={error} />}
        {!running && !error && done === total && (
          <Notice tone="good">{text.importDone(done)}</Notice>
        )}
        <div class="actions">
          {running ? (
            <Button onClick={() => stop.current?.abort(new DOMException('', 'AbortError'))}>
              {text.stop}
            </Button>
          ) : (
            <Button kind="primary" onClick={onClose}>
              {text.close}
            </Button>
          )}
        </div>
      </>
    )
  }
  return (
    <>
      <p class="user-text">{text.fileRows(file.name, file.records.length)}</p>
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
            {file.head.map((name, index) => {
              const candidate = candidates.get(index)
              return (
                <tr key={index}>
                  <th scope="row" class="user-text">
                    {name || index + 1}
                  </th>
                  <td class="soft small user-text">
                    {file.records
                      .slice(0, 3)
                      .map(({ fields }) => (fields[index] ?? '–').slice(0, 60))
                      .join(' · ')}
                  </td>
                  <td>
                    <SelectField
                      label={text.into(name || String(index + 1))}
                      unlabelled
                      value={mapping[index] ?? ''}
                      choices={[
                        { value: '', label: text.skip },
                        ...schema.columns.map((one) => ({
                          value: one.name,
                          label: designText.detailed(one.name, one.type),
                        })),
                        ...(candidate
                          ? [
                              {
                                value: NEW_COLUMN,
                                label: text.newColumn(candidate.name, candidate.type),
                              },
                            ]
                          : []),
                      ]}
                      onValue={(value) =>
                        setMapping(mapping.map((other, at) => (at === index ? value : other)))
                      }
                    />
                  </td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
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
      {!missing && plan.faults.length > 0 && (
        <Notice tone="warn">
          <p>{text.invalid(plan.faults.length)}</p>
          {plan.faults.slice(0, MAX_SHOWN_FAULTS).map(({ line, message }) => (
            <p key={line} class="small user-text">
              {message}
            </p>
          ))}
          <p>{text.invalidHint}</p>
        </Notice>
      )}
      <DialogActions
        onClose={onClose}
        action={text.importRows(plan.rows.length)}
        disabled={missing || twice !== undefined || plan.rows.length === 0}
        onClick={run}
      />
    </>
  )
}

/** Returns the error with lines of the file in place of row indices of the request. */
function located(error: unknown, rows: readonly PlannedRow[]): unknown {
  if (!(error instanceof ApiError)) return error
  const lineOf = (index: unknown): string => text.line(rows[Number(index)]?.line ?? '?')
  const fields = error.fields.map(({ field, message }) => {
    const [, index = '0', rest = ''] = /^(?:rows\[(\d+)\]|data)\.?(.*)$/.exec(field) ?? []
    return { field: `${lineOf(index)} ${rest}`.trim(), message }
  })
  const numbers = error.details['rows']
  const named = Array.isArray(numbers)
    ? numbers.map((index) => ({
        field: lineOf(index),
        message: error.message,
      }))
    : []
  return new ApiError(
    error.status,
    error.code,
    error.message,
    { ...error.details, fields: [...fields, ...named] },
    error.requestId,
  )
}
