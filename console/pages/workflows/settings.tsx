/** The settings of a workflow that can be changed without a new version. */
import { useState } from 'preact/hooks'
import type { Workflow } from '../../../protocol/workflows/rows.ts'
import { ApiError, type FieldFault } from '../../api/client.ts'
import { useSave } from '../../api/save.ts'
import { Button } from '../../design/button.tsx'
import { Checkbox, TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { useUnsaved } from '../../form/unsaved.ts'
import { faultAt } from '../../form/value.ts'
import { may } from '../../shell/session.ts'
import { TagFields, tagsOf, writtenTags } from '../build/tags.tsx'
import { buildText } from '../build/text.ts'
import { workflowsText as text } from './text.ts'

/** Shows the form. It is read-only without `project.edit`. */
export function Settings({
  project,
  workflow,
  onSaved,
}: {
  readonly project: string
  readonly workflow: Workflow
  readonly onSaved: () => void
}) {
  const [name, setName] = useState(workflow.name)
  const [description, setDescription] = useState(workflow.description ?? '')
  const [asTool, setAsTool] = useState(workflow.published_as_tool)
  const [tags, setTags] = useState(writtenTags(workflow.tags))
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const disabled = !may('project.edit')
  const update = useSave(workflow)
  const { isChanged, saved } = useUnsaved([name, description, asTool, tags])
  const save = async (): Promise<void> => {
    try {
      await update('workflow.update', {
        project,
        id: workflow.id,
        name: name.trim(),
        description,
        published_as_tool: asTool,
        tags: tagsOf(tags),
      })
      setFaults([])
      saved()
      onSaved()
      showDone(text.saved)
    } catch (error) {
      setFaults(error instanceof ApiError ? error.fields : [])
      throw error
    }
  }
  return (
    <form class="stack settings" noValidate onSubmit={(event) => event.preventDefault()}>
      <TextField
        label={buildText.name}
        value={name}
        required
        maxLength={160}
        disabled={disabled}
        fault={faultAt(faults, 'name')}
        onValue={setName}
      />
      <TextArea
        label={text.description}
        value={description}
        disabled={disabled}
        fault={faultAt(faults, 'description')}
        onValue={setDescription}
      />
      <div class="field">
        <Checkbox label={text.asTool} checked={asTool} disabled={disabled} onChecked={setAsTool} />
        <div class="hint user-text">{text.asToolHint(workflow.handle)}</div>
      </div>
      <TagFields tags={tags} faults={faults} disabled={disabled} onTags={setTags} />
      {!disabled && (
        <div>
          <Button kind="primary" submit disabled={!isChanged || name.trim() === ''} onClick={save}>
            {text.save}
          </Button>
        </div>
      )}
    </form>
  )
}
