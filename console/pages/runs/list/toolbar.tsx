/** The filters of the list of runs, which are part of the URL. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { useAll } from '../../../api/all.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { type Choice, SearchField, SelectField, TextField } from '../../../design/field.tsx'
import { Dialog } from '../../../design/overlay.tsx'
import { designText } from '../../../design/text.ts'
import { setQuery } from '../../../router/router.ts'
import { useCommands } from '../../../shell/shortcuts.ts'
import { formatTime } from '../../../text/format.ts'
import { focusPart } from '../focus.ts'
import { statusLabel } from '../status.tsx'
import {
  activeFilters,
  type FilterName,
  isoTime,
  localTime,
  queryOf,
  type RunFilter,
  type RunSort,
} from './filters.ts'
import { listText as text } from './text.ts'

/** Delay between the last key press and the search. */
const TYPING_MS = 300
/** Selector of the control that receives the focus after an active filter was removed. */
const MORE = '.more-filters button'
const statuses = ['queued', 'running', 'suspended', 'completed', 'failed', 'cancelled']
const kinds: readonly Choice[] = [
  { value: 'interaction', label: text.waitsInteraction },
  { value: 'worker', label: text.waitsWorker },
  { value: 'lease', label: text.waitsLease },
  { value: 'timer', label: text.waitsTimer },
  { value: 'signal', label: text.waitsSignal },
  { value: 'event', label: text.waitsEvent },
  { value: 'retry', label: text.waitsRetry },
  { value: 'run', label: text.waitsRun },
  { value: 'agent', label: text.waitsAgent },
  { value: 'branches', label: text.waitsBranches },
  { value: 'concurrency', label: text.waitsConcurrency },
  { value: 'cancel', label: text.waitsCancel },
]
const labels: Readonly<Record<Exclude<FilterName, 'q' | 'status'>, string>> = {
  definition_id: text.workflowOnly,
  loop_id: text.loop,
  workflow_type: text.type,
  queue: text.queue,
  initiated_by: text.initiator,
  external_id: text.external,
  source_event_id: text.source,
  parent_run_id: text.parent,
  failed_step: text.failedStep,
  created_after: text.createdAfter,
  created_before: text.createdBefore,
  ended_after: text.endedAfter,
  ended_before: text.endedBefore,
  waiting_on: text.waitingOn,
}

/** Names of records by id. */
export type Names = ReadonlyMap<string, string>

/** Shows the search, the statuses and the active filters. */
export function Filters({
  filter,
  sort,
  names,
  onMore,
}: {
  readonly filter: RunFilter
  readonly sort: RunSort
  readonly names: Names
  readonly onMore: () => void
}) {
  const [typed, setTyped] = useState(filter.q ?? '')
  const frame = useRef<HTMLDivElement>(null)
  useEffect(() => setTyped(filter.q ?? ''), [filter.q])
  useEffect(() => {
    if (typed.trim() === (filter.q ?? '')) return undefined
    const timer = setTimeout(() => setQuery({ q: typed.trim().slice(0, 200), view: '' }), TYPING_MS)
    return () => clearTimeout(timer)
  }, [typed])
  useCommands(
    [
      {
        id: 'runs-search',
        label: text.focusSearch,
        icon: 'search',
        keys: '/',
        run: () => frame.current?.querySelector('input')?.focus(),
      },
      { id: 'runs-filters', label: text.moreFilters, icon: 'filter', keys: 'f', run: onMore },
    ],
    [],
  )
  const chosen = filter.status ?? []
  const toggle = (status: string): void =>
    setQuery({
      status: statuses.filter((one) => (one === status) !== chosen.includes(one)).join(','),
      view: '',
    })
  const active = activeFilters(filter)
  return (
    <div class="stack close">
      <div class="row">
        <div ref={frame} class="grow runs-search">
          <SearchField label={text.search} value={typed} onValue={setTyped} />
        </div>
        <div class="row status-chips" role="group" aria-label={text.status}>
          {statuses.map((status) => (
            <button
              key={status}
              type="button"
              class="status-chip"
              aria-pressed={chosen.includes(status)}
              onClick={() => toggle(status)}
            >
              {statusLabel(status)}
            </button>
          ))}
        </div>
        <SelectField
          label={text.order}
          unlabelled
          value={`${sort.by} ${sort.order}`}
          choices={[
            { value: 'created desc', label: text.newest },
            { value: 'created asc', label: text.oldest },
            { value: 'ended desc', label: text.endedLast },
            { value: 'ended asc', label: text.endedFirst },
          ]}
          onValue={(value) => {
            const [by, order] = value.split(' ')
            setQuery({
              sort: by === 'ended' ? 'ended' : '',
              order: order === 'asc' ? 'asc' : '',
              view: '',
            })
          }}
        />
        <span class="more-filters">
          <Button icon="filter" shortcut="f" onClick={onMore}>
            {text.moreFilters}
          </Button>
        </span>
      </div>
      {active.length > 0 && (
        <ul class="row" aria-label={text.active}>
          {active.map(([name, value]) => {
            const label = labels[name as keyof typeof labels]
            return (
              <li key={name} class="badge filter-badge">
                {label}: <span class="user-text clip">{shownValue(name, value, names)}</span>
                <IconButton
                  icon="close"
                  label={text.remove(label)}
                  onClick={() => {
                    setQuery({ [name]: '', view: '' })
                    focusPart(MORE)
                  }}
                />
              </li>
            )
          })}
          <li>
            <Button
              kind="quiet"
              onClick={() => {
                setQuery({ ...queryOf({}, sort), view: '' })
                focusPart(MORE)
              }}
            >
              {text.clear}
            </Button>
          </li>
        </ul>
      )}
    </div>
  )
}

function shownValue(name: FilterName, value: string, names: Names): string {
  const at = Date.parse(value)
  if (times.has(name) && !Number.isNaN(at)) return formatTime(at, Date.now())
  if (name === 'waiting_on') return kinds.find((kind) => kind.value === value)?.label ?? value
  return names.get(value) ?? value
}

const presets = [
  { label: text.lastHour, ms: 3_600_000 },
  { label: text.lastDay, ms: 86_400_000 },
  { label: text.lastWeek, ms: 7 * 86_400_000 },
]
const times: ReadonlySet<string> = new Set([
  'created_after',
  'created_before',
  'ended_after',
  'ended_before',
])

/** The dialog with all filters. */
export function FilterDialog({
  project,
  filter,
  onClose,
}: {
  readonly project: string
  readonly filter: RunFilter
  readonly onClose: () => void
}) {
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(
      Object.entries(filter).map(([name, value]) => [
        name,
        times.has(name) ? localTime(String(value)) : String(value),
      ]),
    ),
  )
  const workflows = useAll('workflow.list', { project }).state.value.items
  const loops = useAll('loop.list', { project }).state.value.items
  const set = (name: FilterName) => (value: string) => setValues({ ...values, [name]: value })
  const apply = (): void => {
    const query = Object.fromEntries(
      Object.keys(labels).map((name) => {
        const value = values[name]?.trim() ?? ''
        // The field does not show seconds, so a time that was not edited keeps its previous value.
        const before = filter[name as 'created_after']
        return [
          name,
          !times.has(name) ? value : value === localTime(before) ? (before ?? '') : isoTime(value),
        ]
      }),
    )
    setQuery({ ...query, view: '' }, { push: true })
    onClose()
  }
  const field = (name: keyof typeof labels, hint?: string) => (
    <TextField
      label={labels[name]}
      value={values[name] ?? ''}
      onValue={set(name)}
      {...(hint !== undefined && { hint })}
      {...(times.has(name) && { type: 'datetime-local' as const })}
    />
  )
  const choice = (name: keyof typeof labels, all: string, choices: readonly Choice[]) => (
    <SelectField
      label={labels[name]}
      value={values[name] ?? ''}
      choices={[
        { value: '', label: all },
        ...choices,
        ...(values[name] && !choices.some(({ value }) => value === values[name])
          ? [{ value: values[name], label: values[name] }]
          : []),
      ]}
      onValue={set(name)}
    />
  )
  return (
    <Dialog title={text.filters} onClose={onClose} wide>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          apply()
        }}
      >
        <div class="grid">
          {choice(
            'definition_id',
            text.allWorkflows,
            workflows.map(({ id, name }) => ({ value: id, label: name })),
          )}
          {choice(
            'loop_id',
            text.allLoops,
            loops.map(({ id, name }) => ({ value: id, label: name })),
          )}
          {choice('waiting_on', text.anything, kinds)}
          {field('queue')}
          {field('initiated_by')}
          {field('external_id')}
          {field('failed_step', text.failedStepHint)}
          {field('workflow_type')}
          {field('source_event_id')}
          {field('parent_run_id')}
          {field('created_after')}
          {field('created_before')}
          {field('ended_after')}
          {field('ended_before')}
        </div>
        <div class="row">
          {presets.map(({ label, ms }) => (
            <Button
              key={label}
              kind="quiet"
              onClick={() =>
                setValues({
                  ...values,
                  created_after: localTime(new Date(Date.now() - ms).toISOString()),
                  created_before: '',
                })
              }
            >
              {label}
            </Button>
          ))}
        </div>
        <div class="actions">
          <Button onClick={onClose}>{designText.cancel}</Button>
          <Button kind="primary" submit>
            {text.apply}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
