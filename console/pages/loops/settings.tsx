/** The settings of a loop that can be changed without a new version. */
import type { Loop } from '../../../protocol/loops/schema.ts'
import { TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { JsonField } from '../../editor/field.tsx'
import { useEdits } from '../../form/edits.ts'
import { useFaults } from '../../form/faults.ts'
import { SaveEdits } from '../../form/save-edits.tsx'
import { faultAt } from '../../form/value.ts'
import { may } from '../../shell/session.ts'
import { jsonObject, objectText } from '../build/object.ts'
import { areTagsValid, TagFields, tagsOf, writtenTags } from '../build/tags.tsx'
import { tagsText } from '../build/tags-text.ts'
import { loopsText as text } from './text.ts'

const valuesOf = (loop: Loop) => ({
  name: loop.name,
  description: loop.description ?? '',
  agent_id: loop.agent_id ?? '',
  default_config: objectText(loop.default_config),
  settings: objectText(loop.settings),
  tags: writtenTags(loop.tags),
})
const labels = {
  name: text.name,
  description: text.description,
  agent_id: text.agent,
  default_config: text.defaultConfig,
  settings: text.loopSettings,
  tags: tagsText.tags,
}

/** Shows the form. It is read-only without `project.edit`. */
export function Settings({
  project,
  loop,
  onSaved,
}: {
  readonly project: string
  readonly loop: Loop
  readonly onSaved: () => void
}) {
  const edits = useEdits(loop, valuesOf)
  const { shown, changes, set } = edits
  const { faults, setFaults, attempt } = useFaults()
  const disabled = !may('project.edit')
  const save = async (): Promise<void> => {
    const [default_config, given] = [jsonObject(shown.default_config), jsonObject(shown.settings)]
    if (!default_config || !given)
      return setFaults([
        { field: default_config ? 'settings' : 'default_config', message: text.notObject },
      ])
    await attempt(async () => {
      const { name, description, agent_id, tags } = changes
      const isSaved = await edits.update('loop.update', {
        project,
        id: loop.id,
        ...(name !== undefined && { name: name.trim() }),
        ...(description !== undefined && { description }),
        ...(agent_id !== undefined && { agent_id: agent_id.trim() }),
        ...(changes.default_config !== undefined && { default_config }),
        ...(changes.settings !== undefined && { settings: given }),
        ...(tags && { tags: tagsOf(tags) }),
      })
      if (!isSaved) return
      onSaved()
      showDone(text.saved)
    })
  }
  const field = (path: string) => ({ disabled, fault: faultAt(faults, path) })
  const json = (path: 'default_config' | 'settings') => (
    <JsonField
      label={labels[path]}
      path={path}
      faults={faults}
      rows={4}
      value={shown[path]}
      readOnly={disabled}
      onValue={(value) => set({ [path]: value })}
    />
  )
  return (
    <form class="stack settings" noValidate onSubmit={(event) => event.preventDefault()}>
      <TextField
        {...field('name')}
        label={labels.name}
        value={shown.name}
        required
        maxLength={160}
        onValue={(name) => set({ name })}
      />
      <TextArea
        {...field('description')}
        label={labels.description}
        value={shown.description}
        onValue={(description) => set({ description })}
      />
      <TextField
        {...field('agent_id')}
        label={labels.agent_id}
        hint={text.agentHint}
        value={shown.agent_id}
        onValue={(agent_id) => set({ agent_id })}
      />
      {json('default_config')}
      {json('settings')}
      <p class="small soft">{text.loopSettingsHint}</p>
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
