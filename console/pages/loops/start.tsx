/** The dialog that starts a run of a loop. */
import { useState } from 'preact/hooks'
import type { Loop } from '../../../protocol/loops/schema.ts'
import { call, type FieldFault } from '../../api/client.ts'
import { CopyCall } from '../../design/copy.tsx'
import { TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { reportFaults } from '../../form/faults.ts'
import { SchemaForm } from '../../form/form.tsx'
import { useForm } from '../../form/state.ts'
import { faultAt, isDeclared, numberOf, schemaOfDeclared } from '../../form/value.ts'
import { go } from '../../router/router.ts'
import { buildText } from '../build/text.ts'
import { loopsText as text } from './text.ts'

/** Shows the dialog. After the run has been started, its page opens. */
export function StartDialog({
  project,
  loop,
  onClose,
}: {
  readonly project: string
  readonly loop: Loop
  readonly onClose: () => void
}) {
  const event = useForm(schemaOfDeclared(loop.event))
  const config = useForm(schemaOfDeclared(loop.config), loop.default_config)
  const hasConfig = isDeclared(loop.config)
  const [budget, setBudget] = useState('')
  const [key, setKey] = useState('')
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const amount = numberOf(budget)
  const request = {
    project,
    id: loop.id,
    event: event.value as Record<string, unknown>,
    ...(hasConfig && { config: config.value as Record<string, unknown> }),
    ...(typeof amount === 'number' && { budget_usd: amount }),
    ...(key.trim() !== '' && { idempotency_key: key.trim() }),
  }
  const start = async (): Promise<void> => {
    const given = event.take()
    const values = hasConfig ? config.take() : undefined
    const isWrong = typeof amount === 'string' || (amount ?? 0) < 0
    setFaults(isWrong ? [{ field: 'budget_usd', message: text.notAmount }] : [])
    if (!given || (hasConfig && !values) || isWrong) return
    try {
      const run = await call('loop.start', request)
      showDone(text.started)
      go(`/p/${encodeURIComponent(project)}/runs/${run.id}`)
    } catch (error) {
      reportFaults(error, /^(event|config|budget_usd|idempotency_key)\b/, (found) => {
        event.report(found, 'event')
        config.report(found, 'config')
        setFaults(found)
      })
    }
  }
  return (
    <Dialog title={text.startTitle(loop.name)} wide onClose={onClose}>
      <form class="stack" noValidate onSubmit={(event) => event.preventDefault()}>
        <SchemaForm form={event} label={text.eventInput} />
        {!isDeclared(loop.event) && <p class="small soft">{text.anyEvent}</p>}
        {hasConfig && (
          <fieldset class="form-part">
            <legend>{buildText.config}</legend>
            <SchemaForm form={config} label={buildText.config} />
          </fieldset>
        )}
        <details {...(faults.length > 0 && { open: true })}>
          <summary>{buildText.options}</summary>
          <div class="grid">
            <TextField
              label={text.budget}
              hint={text.budgetHint}
              value={budget}
              fault={faultAt(faults, 'budget_usd')}
              onValue={setBudget}
            />
            <TextField
              label={buildText.key}
              hint={buildText.keyHint}
              autocomplete="off"
              value={key}
              fault={faultAt(faults, 'idempotency_key')}
              onValue={setKey}
            />
          </div>
        </details>
        <DialogActions
          onClose={onClose}
          action={buildText.start}
          submit
          icon="start"
          onClick={start}
        >
          <CopyCall name="loop.start" input={request} />
        </DialogActions>
      </form>
    </Dialog>
  )
}
