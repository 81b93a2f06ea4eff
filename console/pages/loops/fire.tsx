/** The dialog that fires a trigger as a test. */
import { useState } from 'preact/hooks'
import type { Loop } from '../../../protocol/loops/schema.ts'
import { ApiError, call, type FieldFault } from '../../api/client.ts'
import { CopyCall } from '../../design/copy.tsx'
import { showDone } from '../../design/notify.ts'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Editor } from '../../editor/editor.tsx'
import { faultsBelow } from '../../editor/faults.ts'
import { go } from '../../router/router.ts'
import { jsonObject } from '../build/object.ts'
import { loopsText as text } from './text.ts'

/** Shows the dialog. After the run has been started, its page opens. */
export function FireDialog({
  project,
  loop,
  trigger,
  name,
  onClose,
}: {
  readonly project: string
  readonly loop: Loop
  /** Id of the trigger. */
  readonly trigger: string
  /** Name of the trigger for the user. */
  readonly name: string
  readonly onClose: () => void
}) {
  const [written, setWritten] = useState('')
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const event = jsonObject(written)
  const request = {
    project,
    id: loop.id,
    trigger_id: trigger,
    ...(event && Object.keys(event).length > 0 && { event }),
  }
  const fire = async (): Promise<void> => {
    if (!event) return setFaults([{ field: '', message: text.notObject }])
    try {
      const run = await call('loop.fire', request)
      showDone(text.fired)
      go(`/p/${encodeURIComponent(project)}/runs/${run.id}`)
    } catch (error) {
      setFaults(error instanceof ApiError ? faultsBelow(error.fields, 'event') : [])
      throw error
    }
  }
  return (
    <Dialog title={text.fireTitle(name)} onClose={onClose}>
      <p>{text.fireHint}</p>
      <form class="field" onSubmit={(event) => event.preventDefault()}>
        <div class="label">{text.fireEvent}</div>
        <Editor
          label={text.fireEvent}
          language="json"
          rows={5}
          hint="{}"
          value={written}
          faults={faults}
          onValue={(next) => {
            setFaults([])
            setWritten(next)
          }}
        />
        <div class="hint">{text.fireEventHint}</div>
      </form>
      <DialogActions onClose={onClose} action={text.fireAction} icon="start" onClick={fire}>
        <CopyCall name="loop.fire" input={request} />
      </DialogActions>
    </Dialog>
  )
}
