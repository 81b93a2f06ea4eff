/** All events of a run, updated live: a list, and the content of one event. */
import { useMemo } from 'preact/hooks'
import type { RunEventRecord } from '../../../../../protocol/runs/schema.ts'
import { Button, IconButton } from '../../../../design/button.tsx'
import { Checkbox, SelectField } from '../../../../design/field.tsx'
import type { Tone } from '../../../../design/states.tsx'
import { Badge, Empty } from '../../../../design/states.tsx'
import { Tree } from '../../../../design/tree.tsx'
import { VirtualList } from '../../../../design/virtual/list.tsx'
import { currentUrl, setQuery } from '../../../../router/router.ts'
import { useCommands } from '../../../../shell/shortcuts.ts'
import { focusPart } from '../../focus.ts'
import type { LiveRun } from '../data/live-run.ts'
import { runText as text } from '../text.ts'
import { ClockTime } from './clock-time.tsx'
import { StepFilter } from './step-filter.tsx'

const tones: Readonly<Record<string, Tone>> = {
  failed: 'bad',
  timed_out: 'bad',
  completed: 'good',
  passed: 'good',
  suspended: 'warn',
  retried: 'warn',
}
const toneOf = (type: string): Tone => tones[type.slice(type.indexOf('.') + 1)] ?? 'neutral'

/** The payload members that can be the summary of an event. The first that is present is used. */
const namedBy = [
  'error',
  'error_message',
  'reason',
  'wait_kind',
  'action',
  'title',
  'kind',
  'status',
]
function summaryOf({ payload = {} }: RunEventRecord): string {
  const name = namedBy.find((one) => typeof payload[one] === 'string')
  return name === undefined ? '' : String(payload[name]).slice(0, 300)
}

/** Shows the events. Filters and the sequence of the selected event are in the URL. */
export function Events({ run }: { readonly run: LiveRun }) {
  const version = run.version.value
  const { query } = currentUrl.value
  const type = query.get('type') ?? ''
  const only = query.get('only') ?? ''
  const oldest = query.get('order') === 'asc'
  const { events, types } = run.fold
  const shown = useMemo(() => {
    const found = events.filter(
      (event) =>
        (type === '' || event.event_type === type) && (only === '' || event.step_key === only),
    )
    return oldest ? found : found.reverse()
  }, [version, type, only, oldest])
  const wanted = Number(query.get('event'))
  const chosen = wanted > 0 ? events.find(({ sequence }) => sequence === wanted) : undefined
  if (events.length === 0)
    return (
      <Empty icon="audit" title={text.noEvents}>
        {text.noEventsHint}
      </Empty>
    )
  const hrefOf = (sequence: number): string => {
    const next = new URLSearchParams(query)
    next.set('event', String(sequence))
    return `?${next}`
  }
  return (
    <div class="stack close">
      <div class="row apart">
        <div class="row">
          <SelectField
            label={text.type}
            unlabelled
            value={type}
            choices={[
              { value: '', label: text.allTypes },
              ...[...types].sort().map((value) => ({ value, label: value })),
            ]}
            onValue={(value) => setQuery({ type: value })}
          />
          <Checkbox
            label={text.newestFirst}
            checked={!oldest}
            onChecked={(on) => setQuery({ order: on ? '' : 'asc' })}
          />
          {only !== '' && <StepFilter step={only} />}
        </div>
        <span class="soft small" role="status">
          {text.eventCount(shown.length)}
        </span>
      </div>
      {shown.length === 0 ? (
        <Empty title={text.noMatch}>
          <Button onClick={() => setQuery({ type: '', only: '' })}>{text.clearFilter}</Button>
        </Empty>
      ) : (
        <div class={chosen ? 'beside' : ''}>
          <VirtualList
            items={shown}
            line={34}
            columns="7rem 12rem minmax(8rem, 1fr) minmax(10rem, 2fr)"
            height={`min(${shown.length * 34 + 40}px, 62vh)`}
            label={text.events}
            head={[text.time, text.type, text.step, text.summary]}
            keyOf={({ id }) => id}
            render={(event) => ({
              href: hrefOf(event.sequence),
              selected: event === chosen,
              cells: [
                <ClockTime at={event.created_at} />,
                <Badge tone={toneOf(event.event_type)}>{event.event_type}</Badge>,
                <span class="user-text">{event.step_key}</span>,
                <span class="soft user-text">{summaryOf(event)}</span>,
              ],
            })}
          />
          {chosen && <Chosen event={chosen} />}
        </div>
      )}
    </div>
  )
}

function Chosen({ event }: { readonly event: RunEventRecord }) {
  const close = (): void => {
    setQuery({ event: '' })
    focusPart('[role=tabpanel] .virtual')
  }
  useCommands([{ id: 'run-close-event', label: text.closeEvent, keys: 'Escape', run: close }], [])
  return (
    <section class="card step-panel" aria-labelledby="event-title">
      <header>
        <h2 id="event-title" class="grow">
          {event.event_type}
        </h2>
        <IconButton icon="close" label={text.closeEvent} onClick={close} />
      </header>
      <div class="body stack">
        <dl class="facts">
          <dt>{text.time}</dt>
          <dd>
            <ClockTime at={event.created_at} />
          </dd>
          {event.step_key !== undefined && (
            <>
              <dt>{text.step}</dt>
              <dd class="user-text">{event.step_key}</dd>
            </>
          )}
        </dl>
        <Tree value={event.payload ?? {}} open={3} />
      </div>
    </section>
  )
}
