/** The columns of the list of runs, and the dialog that chooses them. */
import type { ComponentChildren } from 'preact'
import { Button } from '../../../design/button.tsx'
import { Checkbox } from '../../../design/field.tsx'
import { Dialog } from '../../../design/overlay.tsx'
import { designText } from '../../../design/text.ts'
import { Duration, Time } from '../../../design/time.tsx'
import { StatusBadge } from '../status.tsx'
import { runsText } from '../text.ts'
import type { RunChange } from './changes.ts'
import type { ListedRun } from './listed-run.ts'
import { listText as text } from './text.ts'
import type { Names } from './toolbar.tsx'

/** A run as the list shows it: its record, and its change since the record was loaded. */
export interface ShownRun {
  readonly run: ListedRun
  readonly change: RunChange | undefined
  readonly names: Names
}
interface Column {
  readonly name: string
  readonly label: string
  /** A value of `grid-template-columns`. */
  readonly width: string
  readonly cell: (shown: ShownRun) => ComponentChildren
}

const ended: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])
const statusOf = ({ run, change }: ShownRun): string =>
  change && change.at >= run.updated_at ? change.status : run.status
const endOf = (shown: ShownRun): string | undefined =>
  shown.run.completed_at ?? (ended.has(statusOf(shown)) ? shown.change?.at : undefined)
const plain = (value: string | undefined) => <span class="user-text">{value}</span>

/** Returns the name of the workflow or loop of a run. */
export const definitionOf = ({ run, names }: Pick<ShownRun, 'run' | 'names'>): string =>
  run.loop_id !== undefined
    ? (run.loop_name ?? names.get(run.loop_id) ?? run.loop_id)
    : run.definition_id === ''
      ? runsText.inline
      : (names.get(run.definition_id) ?? run.definition_id)

/** The columns after the name, in display order. */
export const columns: readonly Column[] = [
  {
    name: 'workflow',
    label: text.workflow,
    width: 'minmax(9rem, 1.2fr)',
    cell: (shown) => plain(definitionOf(shown)),
  },
  {
    name: 'started',
    label: text.started,
    width: '8.5rem',
    cell: ({ run }) => <Time at={run.started_at ?? run.created_at} relative />,
  },
  {
    name: 'duration',
    label: text.duration,
    width: '6rem',
    cell: (shown) => (
      <Duration from={shown.run.started_at ?? shown.run.created_at} to={endOf(shown)} />
    ),
  },
  {
    name: 'queue',
    label: text.queue,
    width: 'minmax(4.5rem, 0.5fr)',
    cell: ({ run }) => plain(run.queue),
  },
  {
    name: 'initiator',
    label: text.initiator,
    width: 'minmax(5.5rem, 0.6fr)',
    cell: ({ run, names }) =>
      plain(run.source ?? names.get(run.initiated_by ?? '') ?? run.initiated_by),
  },
  {
    name: 'error',
    label: text.error,
    width: 'minmax(8rem, 1.4fr)',
    cell: ({ run }) => (
      <span class="fault-text user-text" title={run.error_message?.slice(0, 2000)}>
        {run.error_message?.slice(0, 300)}
      </span>
    ),
  },
  {
    name: 'id',
    label: text.id,
    width: '17rem',
    cell: ({ run }) => <span class="mono">{run.id}</span>,
  },
  {
    name: 'external',
    label: text.external,
    width: 'minmax(7rem, 0.8fr)',
    cell: ({ run }) => plain(run.external_id),
  },
  {
    name: 'ended',
    label: text.ended,
    width: '8.5rem',
    cell: (shown) => {
      const at = endOf(shown)
      return at && <Time at={at} relative />
    },
  },
]
const byDefault = ['workflow', 'started', 'duration', 'queue', 'initiator', 'error']
/** Returns the stored column names, or `byDefault` if none were stored, in display order. */
export const chosenColumns = (stored: readonly string[] | undefined): readonly string[] =>
  columns.map(({ name }) => name).filter((name) => (stored ?? byDefault).includes(name))

/** Shows the newest known status of a run. */
export const StatusCell = (shown: ShownRun) => <StatusBadge status={statusOf(shown)} />

/** Shows the dialog that chooses the columns. */
export function ColumnsDialog({
  chosen,
  onChoose,
  onClose,
}: {
  readonly chosen: readonly string[]
  readonly onChoose: (columns: readonly string[]) => Promise<void>
  readonly onClose: () => void
}) {
  return (
    <Dialog title={text.columns} onClose={onClose}>
      <p class="soft">{text.columnsHint}</p>
      <div class="stack close">
        {columns.map(({ name, label }) => (
          <Checkbox
            key={name}
            label={label}
            checked={chosen.includes(name)}
            onChecked={(on) =>
              void onChoose(
                columns
                  .map((column) => column.name)
                  .filter((one) => (one === name ? on : chosen.includes(one))),
              )
            }
          />
        ))}
      </div>
      <div class="actions">
        <Button kind="primary" onClick={onClose}>
          {designText.close}
        </Button>
      </div>
    </Dialog>
  )
}
