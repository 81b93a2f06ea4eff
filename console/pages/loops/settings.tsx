/** The settings of a loop that can be changed without a new version. */
import { useState } from 'preact/hooks'
import type { Loop } from '../../../protocol/loops/schema.ts'
import { useSave } from '../../api/save.ts'
import { Button } from '../../design/button.tsx'
import { TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { JsonField } from '../../editor/field.tsx'
import { useFaults } from '../../form/faults.ts'
import { useUnsaved } from '../../form/unsaved.ts'
import { faultAt } from '../../form/value.ts'
import { may } from '../../shell/session.ts'
import { jsonObject, objectText } from '../build/object.ts'
import { TagFields, tagsOf, writtenTags } from '../build/tags.tsx'
import { loopsText as text } from './text.ts'

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
  const [name, setName] = useState(loop.name)
  const [description, setDescription] = useState(loop.description ?? '')
  const [agent, setAgent] = useState(loop.agent_id ?? '')
  const [config, setConfig] = useState(objectText(loop.default_config))
  const [settings, setSettings] = useState(objectText(loop.settings))
  const [tags, setTags] = useState(writtenTags(loop.tags))
  const { faults, setFaults, attempt } = useFaults()
  const disabled = !may('project.edit')
  const update = useSave(loop)
  const { isChanged, saved } = useUnsaved([name, description, agent, config, settings, tags])
  const save = async (): Promise<void> => {
    const [default_config, given] = [jsonObject(config), jsonObject(settings)]
    if (!default_config || !given)
      return setFaults([
        { field: default_config ? 'settings' : 'default_config', message: text.notObject },
      ])
    await attempt(async () => {
      await update('loop.update', {
        project,
        id: loop.id,
        name: name.trim(),
        description,
        tags: tagsOf(tags),
        ...(agent !== (loop.agent_id ?? '') && { agent_id: agent.trim() }),
        ...(config !== objectText(loop.default_config) && { default_config }),
        ...(settings !== objectText(loop.settings) && { settings: given }),
      })
      saved()
      onSaved()
      showDone(text.saved)
    })
  }
  const field = (path: string) => ({ disabled, fault: faultAt(faults, path) })
  const json = (label: string, path: string, value: string, onValue: (text: string) => void) => (
    <JsonField
      label={label}
      path={path}
      faults={faults}
      rows={4}
      value={value}
      readOnly={disabled}
      onValue={onValue}
    />
  )
  return (
    <form class="stack settings" noValidate onSubmit={(event) => event.preventDefault()}>
      <TextField
        {...field('name')}
        label={text.name}
        value={name}
        required
        maxLength={160}
        onValue={setName}
      />
      <TextArea
        {...field('description')}
        label={text.description}
        value={description}
        onValue={setDescription}
      />
      <TextField
        {...field('agent_id')}
        label={text.agent}
        hint={text.agentHint}
        value={agent}
        onValue={setAgent}
      />
      {json(text.defaultConfig, 'default_config', config, setConfig)}
      {json(text.loopSettings, 'settings', settings, setSettings)}
      <p class="small soft">{text.loopSettingsHint}</p>
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
