/** The settings of a workflow that can be changed without a new version. */
import type { Workflow } from '../../../protocol/workflows/rows.ts'
import { Checkbox, TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { useEdits } from '../../form/edits.ts'
import { useFaults } from '../../form/faults.ts'
import { SaveEdits } from '../../form/save-edits.tsx'
import { faultAt } from '../../form/value.ts'
import { may } from '../../shell/session.ts'
import { areTagsValid, TagFields, tagsOf, writtenTags } from '../build/tags.tsx'
import { tagsText } from '../build/tags-text.ts'
import { buildText } from '../build/text.ts'
import { workflowsText as text } from './text.ts'

const valuesOf = (workflow: Workflow) => ({
  name: workflow.name,
  description: workflow.description ?? '',
  published_as_tool: workflow.published_as_tool,
  tags: writtenTags(workflow.tags),
})
const labels = {
  name: buildText.name,
  description: text.description,
  published_as_tool: text.asTool,
  tags: tagsText.tags,
}

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
  const edits = useEdits(workflow, valuesOf)
  const { shown, changes, set } = edits
  const { faults, attempt } = useFaults()
  const disabled = !may('project.edit')
  const save = (): Promise<void> =>
    attempt(async () => {
      const { name, tags, ...rest } = changes
      const isSaved = await edits.update('workflow.update', {
        project,
        id: workflow.id,
        ...rest,
        ...(name !== undefined && { name: name.trim() }),
        ...(tags && { tags: tagsOf(tags) }),
      })
      if (!isSaved) return
      onSaved()
      showDone(text.saved)
    })
  return (
    <form class="stack settings" noValidate onSubmit={(event) => event.preventDefault()}>
      <TextField
        label={labels.name}
        value={shown.name}
        required
        maxLength={160}
        disabled={disabled}
        fault={faultAt(faults, 'name')}
        onValue={(name) => set({ name })}
      />
      <TextArea
        label={labels.description}
        value={shown.description}
        disabled={disabled}
        fault={faultAt(faults, 'description')}
        onValue={(description) => set({ description })}
      />
      <div class="field">
        <Checkbox
          label={labels.published_as_tool}
          checked={shown.published_as_tool}
          disabled={disabled}
          onChecked={(published_as_tool) => set({ published_as_tool })}
        />
        <div class="hint user-text">{text.asToolHint(workflow.handle)}</div>
      </div>
      <TagFields
        tags={shown.tags}
        faults={faults}
        disabled={disabled}
        onTags={(tags) => set({ tags })}
      />
      {!disabled && (
        <SaveEdits
          edits={edits}
          labels={labels}
          isValid={shown.name.trim() !== '' && areTagsValid(shown.tags)}
          onSave={save}
        />
      )}
    </form>
  )
}
