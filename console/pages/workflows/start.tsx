/** The dialog that starts a run of a workflow. */
import { useState } from 'preact/hooks'
import type { Workflow } from '../../../protocol/workflows/rows.ts'
import { call, type FieldFault } from '../../api/client.ts'
import { CopyCall } from '../../design/copy.tsx'
import { showDone } from '../../design/notify.ts'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { reportFaults } from '../../form/faults.ts'
import { SchemaForm } from '../../form/form.tsx'
import { useForm } from '../../form/state.ts'
import { isDeclared, schemaOfDeclared } from '../../form/value.ts'
import { go } from '../../router/router.ts'
import { noOptions, readOptions } from '../build/options.ts'
import { StartOptionFields } from '../build/start-options.tsx'
import { buildText } from '../build/text.ts'
import { workflowsText as text } from './text.ts'

/** Shows the dialog. After the run has been started, its page opens. */
export function StartDialog({
  project,
  workflow,
  onClose,
}: {
  readonly project: string
  readonly workflow: Workflow
  readonly onClose: () => void
}) {
  const { spec, id, handle, name } = workflow
  const input = useForm(schemaOfDeclared(spec?.input))
  const config = useForm(schemaOfDeclared(spec?.config))
  const hasConfig = isDeclared(spec?.config)
  const [written, setWritten] = useState(noOptions)
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const read = readOptions(written, { notWhole: buildText.notWhole, notObject: text.notObject })
  const request = {
    project,
    ...('options' in read && read.options),
    input: input.value as Record<string, unknown>,
    ...(hasConfig && { config: config.value as Record<string, unknown> }),
  }
  const start = async (): Promise<void> => {
    const given = input.take()
    const values = hasConfig ? config.take() : undefined
    setFaults('faults' in read ? read.faults : [])
    if (!given || (hasConfig && !values) || 'faults' in read) return
    try {
      const run = await call('workflow.run', { ...request, id })
      showDone(text.started)
      go(`/p/${encodeURIComponent(project)}/runs/${run.id}`)
    } catch (error) {
      const shown = /^(input|config|priority|queue|metadata|idempotency_key|external_id)\b/
      reportFaults(error, shown, (found) => {
        input.report(found, 'input')
        config.report(found, 'config')
        setFaults(found)
      })
    }
  }
  return (
    <Dialog title={text.startTitle(name)} wide onClose={onClose}>
      <form class="stack" noValidate onSubmit={(event) => event.preventDefault()}>
        <SchemaForm form={input} label={buildText.input} />
        {!isDeclared(spec?.input) && <p class="small soft">{text.anyInput}</p>}
        {hasConfig && (
          <fieldset class="form-part">
            <legend>{buildText.config}</legend>
            <SchemaForm form={config} label={buildText.config} />
          </fieldset>
        )}
        <StartOptionFields written={written} faults={faults} onWritten={setWritten} />
        <DialogActions
          onClose={onClose}
          action={buildText.start}
          submit
          icon="start"
          onClick={start}
        >
          <CopyCall name="workflow.run" input={{ ...request, id: handle }} />
        </DialogActions>
      </form>
    </Dialog>
  )
}
