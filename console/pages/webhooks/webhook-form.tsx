/** The dialog that creates or changes a webhook. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useSave } from '../../api/save.ts'
import { Button } from '../../design/button.tsx'
import { Checkbox, TextArea, TextField } from '../../design/field.tsx'
import { FormDialog } from '../../form/dialog.tsx'
import { useChanged } from '../../form/unsaved.ts'
import { eventsOf } from './events-text.ts'
import { webhooksText as text } from './text.ts'

export type Webhook = CallReply<'webhook.get'>
/** Event types that the form offers, and patterns for several types. */
const OFFERED = ['run.*', 'run.failed', 'interaction.*', 'session.*', 'loop.*', 'check.*']

/** Shows the dialog. Without `of`, it creates a webhook. */
export function WebhookForm({
  project,
  of,
  onClose,
}: {
  readonly project: string
  readonly of?: Webhook
  readonly onClose: (changed?: Webhook) => void
}) {
  const [name, setName] = useState(of?.name ?? '')
  const [url, setUrl] = useState(of?.url ?? '')
  const [events, setEvents] = useState(of?.events.join(' ') ?? '')
  const [enabled, setEnabled] = useState(of?.enabled ?? true)
  const save = useSave(of)
  const { isChanged } = useChanged([name, url, events, enabled])
  const submit = async (): Promise<void> => {
    const selected = eventsOf(events)
    if (!of) {
      onClose(await call('webhook.create', { project, name, url, events: [...selected], enabled }))
      return
    }
    onClose(
      await save('webhook.update', {
        project,
        webhook_id: of.id,
        ...(name !== of.name && { name }),
        ...(url !== of.url && { url }),
        ...(selected.join() !== of.events.join() && { events: [...selected] }),
        ...(enabled !== of.enabled && { enabled }),
      }),
    )
  }
  return (
    <FormDialog
      title={of ? text.editTitle : text.new}
      action={of ? text.save : text.create}
      disabled={of !== undefined && !isChanged}
      onSubmit={submit}
      onClose={() => onClose()}
    >
      {(faultOf) => (
        <>
          <TextField
            label={text.name}
            required
            maxLength={160}
            fault={faultOf('name')}
            value={name}
            onValue={setName}
          />
          <TextField
            label={text.url}
            placeholder="https://"
            spellcheck={false}
            autocomplete="off"
            maxLength={2048}
            hint={of?.url.includes('***') ? text.urlKept : text.urlHint}
            fault={faultOf('url')}
            value={url}
            onValue={setUrl}
          />
          <TextArea
            label={text.events}
            rows={2}
            spellcheck={false}
            hint={text.eventsHint}
            fault={faultOf('events')}
            value={events}
            onValue={setEvents}
          />
          <fieldset class="choices">
            <legend class="small soft">{text.suggestions}</legend>
            <div class="row tight">
              {OFFERED.filter((type) => !eventsOf(events).includes(type)).map((type) => (
                <Button
                  key={type}
                  kind="quiet"
                  icon="plus"
                  onClick={() => setEvents([...eventsOf(events), type].join(' '))}
                >
                  {type}
                </Button>
              ))}
            </div>
          </fieldset>
          <Checkbox label={text.enabledHint} checked={enabled} onChecked={setEnabled} />
        </>
      )}
    </FormDialog>
  )
}
