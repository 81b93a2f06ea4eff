/** The fields for the start options of a run. */
import type { FieldFault } from '../../api/client.ts'
import { TextArea, TextField } from '../../design/field.tsx'
import { faultAt } from '../../form/value.ts'
import type { WrittenOptions } from './options.ts'
import { buildText as text } from './text.ts'

/** Shows the fields, collapsed unless one of them has a fault. */
export function StartOptionFields({
  written,
  faults,
  onWritten,
}: {
  readonly written: WrittenOptions
  readonly faults: readonly FieldFault[]
  readonly onWritten: (written: WrittenOptions) => void
}) {
  const field = (name: keyof WrittenOptions) => ({
    value: written[name],
    fault: faultAt(faults, name, true),
    onValue: (value: string) => onWritten({ ...written, [name]: value }),
  })
  const isOpen = Object.keys(written).some((name) => faultAt(faults, name, true) !== undefined)
  return (
    <details {...(isOpen && { open: true })}>
      <summary>{text.options}</summary>
      <div class="grid">
        <TextField {...field('priority')} label={text.priority} hint={text.priorityHint} />
        <TextField {...field('queue')} label={text.queue} hint={text.queueHint} />
        <TextField
          {...field('idempotency_key')}
          label={text.key}
          hint={text.keyHint}
          autocomplete="off"
        />
        <TextField
          {...field('external_id')}
          label={text.externalId}
          hint={text.externalHint}
          autocomplete="off"
        />
        <TextArea {...field('metadata')} label={text.metadata} placeholder='{"team": "web"}' />
      </div>
    </details>
  )
}
