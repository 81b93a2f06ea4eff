/** The dialog that adds or changes a trigger. */
import { useState } from 'preact/hooks'
import type { Trigger } from '../../../protocol/loops/schema.ts'
import { scheduleFault } from '../../../protocol/rules/schedule.ts'
import { ApiError, type FieldFault } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Checkbox, SelectField, TextField } from '../../design/field.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { faultsBelow } from '../../editor/faults.ts'
import { useChanged } from '../../form/unsaved.ts'
import { faultAt } from '../../form/value.ts'
import { NextTimes } from './schedule.tsx'
import { loopsText as text } from './text.ts'
import { type TriggerFields, triggerOf, writtenTrigger } from './trigger-fields.ts'
import { kindWords } from './words.ts'

/** Shows the dialog. `index` is the position of the trigger in the loop. */
export function TriggerDialog({
  project,
  trigger,
  index,
  onSave,
  onClose,
}: {
  readonly project: string
  readonly trigger: Trigger | undefined
  readonly index: number
  readonly onSave: (trigger: Trigger) => Promise<void>
  readonly onClose: () => void
}) {
  const [written, setWritten] = useState(() => writtenTrigger(trigger))
  const { isChanged } = useChanged([written])
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const catalog = useQuery('catalog.events', written.kind === 'event' ? { project } : undefined)
  const types = (catalog.state.value.data?.items ?? []).flatMap((source) =>
    source.readiness === 'ready' ? source.event_types.map(({ name }) => name) : [],
  )
  const change = (part: Partial<TriggerFields>): void => {
    setFaults([])
    setWritten({ ...written, ...part })
  }
  const field = (
    name: Exclude<keyof TriggerFields, 'kind' | 'enabled'>,
    path = `config.${name}`,
  ) => ({
    value: written[name],
    fault: faultAt(faults, path),
    autocomplete: 'off',
    onValue: (value: string) => change({ [name]: value }),
  })
  const made = triggerOf(written, trigger)
  const wrong = made.kind === 'schedule' ? scheduleFault(made.config) : undefined
  const isBegun = written.cron !== '' || written.interval !== ''
  const scheduleField = (name: 'cron' | 'interval' | 'timezone') => ({
    ...field(name),
    fault:
      faultAt(faults, `config.${name}`) ??
      (isBegun && wrong?.field === name ? wrong.message : undefined),
  })
  const save = async (): Promise<void> => {
    try {
      await onSave(made)
      onClose()
    } catch (error) {
      const own = error instanceof ApiError ? faultsBelow(error.fields, `triggers[${index}]`) : []
      setFaults(own)
      throw error
    }
  }
  return (
    <Dialog title={trigger ? text.editTrigger : text.addTrigger} onClose={onClose}>
      <form class="stack" noValidate onSubmit={(event) => event.preventDefault()}>
        <SelectField
          label={text.kind}
          value={written.kind}
          choices={Object.entries(kindWords).map(([value, label]) => ({ value, label }))}
          onValue={(kind) => change({ kind: kind as Trigger['kind'] })}
        />
        {written.kind === 'schedule' && (
          <>
            <TextField
              {...scheduleField('cron')}
              label={text.cron}
              hint={text.cronHint}
              placeholder="30 7 * * 1-5"
            />
            <TextField
              {...scheduleField('timezone')}
              label={text.timezone}
              hint={text.timezoneHint}
            />
            <TextField
              {...scheduleField('interval')}
              label={text.interval}
              hint={text.intervalHint}
            />
            {made.kind === 'schedule' && <NextTimes project={project} schedule={made.config} />}
          </>
        )}
        {written.kind === 'event' && (
          <>
            <TextField
              {...field('event_type')}
              label={text.eventType}
              hint={text.eventTypeHint}
              list="event-types"
              required
            />
            <datalist id="event-types">
              {types.map((type) => (
                <option key={type} value={type} />
              ))}
            </datalist>
            <TextField {...field('source_id')} label={text.sourceId} hint={text.sourceIdHint} />
            <TextField {...field('condition')} label={text.condition} hint={text.conditionHint} />
          </>
        )}
        {written.kind === 'http' && (
          <TextField {...field('http_handle')} label={text.handle} hint={text.handleHint} />
        )}
        <TextField {...field('key', 'key')} label={text.key} hint={text.keyHint} />
        <TextField {...field('name', 'name')} label={text.name} />
        <Checkbox
          label={text.enabled}
          checked={written.enabled}
          onChecked={(enabled) => change({ enabled })}
        />
        <DialogActions
          onClose={onClose}
          action={text.save}
          submit
          disabled={
            (trigger !== undefined && !isChanged) ||
            wrong !== undefined ||
            (written.kind === 'event' && written.event_type.trim() === '')
          }
          onClick={save}
        />
      </form>
    </Dialog>
  )
}
