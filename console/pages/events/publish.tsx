/** The dialog that publishes an event. */
import { useState } from 'preact/hooks'
import type { SourceEventRecord } from '../../../protocol/events/rows.ts'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { CopyCall } from '../../design/copy.tsx'
import { TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { JsonField } from '../../editor/field.tsx'
import type { Schema } from '../../editor/suggestions.ts'
import { useFaults } from '../../form/faults.ts'
import { faultAt } from '../../form/value.ts'
import { go } from '../../router/router.ts'
import { jsonObject, objectText } from '../build/object.ts'
import { eventsText as text } from './text.ts'

/**
 * Shows the dialog, prefilled from the event `from`. After the event has been published, its page
 * opens.
 */
export function PublishDialog({
  project,
  from,
  onClose,
}: {
  readonly project: string
  readonly from?: SourceEventRecord
  readonly onClose: () => void
}) {
  const [type, setType] = useState(from?.event_type ?? '')
  const [body, setBody] = useState(objectText(from?.event))
  const [meta, setMeta] = useState(objectText(from?.meta))
  const [source, setSource] = useState(from?.source_id ?? '')
  const [key, setKey] = useState('')
  const { faults, setFaults, attempt } = useFaults()
  const { data: catalog } = useQuery('catalog.events', { project }).state.value
  const known = (catalog?.items ?? []).flatMap(({ event_types }) => event_types)
  const schema = known.find(({ name }) => name === type)?.event_schema
  const [event, fields] = [jsonObject(body), jsonObject(meta)]
  const request = {
    project,
    event_type: type.trim(),
    ...(event && Object.keys(event).length > 0 && { event }),
    ...(fields && Object.keys(fields).length > 0 && { meta: fields }),
    ...(source.trim() !== '' && { source_id: source.trim() }),
    ...(key.trim() !== '' && { idempotency_key: key.trim() }),
  }
  const publish = async (): Promise<void> => {
    const wrong = [
      ...(event ? [] : [{ field: 'event', message: text.notObject }]),
      ...(fields ? [] : [{ field: 'meta', message: text.notObject }]),
    ]
    setFaults(wrong)
    if (wrong.length > 0) return
    await attempt(async () => {
      const { source_event_id, deduped } = await call('event.publish', request)
      showDone(deduped ? text.publishedBefore : text.published)
      go(`/p/${encodeURIComponent(project)}/events/${source_event_id}`)
    })
  }
  return (
    <Dialog title={text.publish} onClose={onClose}>
      <form class="stack" noValidate onSubmit={(event) => event.preventDefault()}>
        <TextField
          label={text.eventType}
          hint={text.eventTypeHint}
          value={type}
          required
          autocomplete="off"
          fault={faultAt(faults, 'event_type')}
          onValue={setType}
        />
        <JsonField
          label={text.body}
          path="event"
          faults={faults}
          rows={6}
          value={body}
          schema={schema as Schema | undefined}
          onValue={setBody}
        />
        <TextField
          label={text.sourceId}
          hint={text.sourceIdHint}
          value={source}
          autocomplete="off"
          fault={faultAt(faults, 'source_id')}
          onValue={setSource}
        />
        <details {...((meta !== '' || faultAt(faults, 'meta', true)) && { open: true })}>
          <summary>{text.more}</summary>
          <div class="stack">
            <JsonField
              label={text.meta}
              hint={text.metaHint}
              path="meta"
              faults={faults}
              rows={3}
              value={meta}
              onValue={setMeta}
            />
            <TextField
              label={text.key}
              hint={text.keyHint}
              value={key}
              autocomplete="off"
              fault={faultAt(faults, 'idempotency_key')}
              onValue={setKey}
            />
          </div>
        </details>
        <DialogActions
          onClose={onClose}
          action={text.publishAction}
          submit
          icon="send"
          disabled={type.trim() === ''}
          onClick={publish}
        >
          <CopyCall name="event.publish" input={request} />
        </DialogActions>
      </form>
    </Dialog>
  )
}
