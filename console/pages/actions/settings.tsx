/**
 * Shows and edits the definition of an action of the project: its URL, texts, schemas and secret.
 */
import { useState } from 'preact/hooks'
import { schemaFaults } from '../../../protocol/rules/json-schema/schema.ts'
import { type CallReply, call, type FieldFault } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm } from '../../design/overlay.tsx'
import { JsonField } from '../../editor/field.tsx'
import { useEdits } from '../../form/edits.ts'
import { useFaults } from '../../form/faults.ts'
import { SaveEdits } from '../../form/save-edits.tsx'
import { faultAt } from '../../form/value.ts'
import { may } from '../../shell/session.ts'
import { jsonObject, objectText } from '../build/object.ts'
import { areTagsValid, TagFields, tagsOf, writtenTags } from '../build/tags.tsx'
import { tagsText } from '../build/tags-text.ts'
import { SecretDialog } from './create.tsx'
import { actionsText as text } from './text.ts'

type Action = CallReply<'action.get'>
const valuesOf = (action: Action) => ({
  title: action.title ?? '',
  description: action.description ?? '',
  endpoint_url: action.endpoint_url ?? '',
  invocation_format: action.invocation_format,
  input_schema: objectText(action.input_schema),
  output_schema: objectText(action.output_schema),
  annotations: (action.annotations ?? {}) as Readonly<Record<string, boolean | undefined>>,
  tags: writtenTags(action.tags),
})
const labels = {
  title: text.actionTitle,
  description: text.description,
  endpoint_url: text.endpoint,
  invocation_format: text.format,
  input_schema: text.inputSchema,
  output_schema: text.outputSchema,
  annotations: text.annotations,
  tags: tagsText.tags,
}
const checkSchema = (value: unknown): readonly FieldFault[] =>
  value === undefined ? [] : schemaFaults(value, '')

/** Shows the section that replaces the signing secret of an action. */
export function Secret({ project, name }: { readonly project: string; readonly name: string }) {
  const [asks, setAsks] = useState(false)
  const [secret, setSecret] = useState<string>()
  return (
    <section class="stack close" aria-label={text.secret}>
      <h2>{text.secret}</h2>
      <p class="soft">{text.secretHint}</p>
      <div>
        <Button icon="secrets" onClick={() => setAsks(true)}>
          {text.rotate}
        </Button>
      </div>
      {asks && (
        <Confirm
          title={text.rotateTitle}
          action={text.rotate}
          danger
          onClose={() => setAsks(false)}
          onConfirm={async () => {
            const made = await call('action.rotate_secret', { project, action_name: name })
            setSecret(made.signing_secret)
          }}
        >
          <p>{text.rotateHint}</p>
        </Confirm>
      )}
      {secret !== undefined && !asks && (
        <SecretDialog secret={secret} onClose={() => setSecret(undefined)} />
      )}
    </section>
  )
}

/** Shows the form with the definition. It is read-only without `project.edit`. */
export function Settings({
  project,
  action,
  onSaved,
}: {
  readonly project: string
  readonly action: Action
  readonly onSaved: () => void
}) {
  const edits = useEdits(action, valuesOf)
  const { shown, changes, set } = edits
  const { faults, setFaults, attempt } = useFaults()
  const disabled = !may('project.edit')
  const save = async (): Promise<void> => {
    const input = jsonObject(shown.input_schema)
    const output = jsonObject(shown.output_schema)
    if (!input || !output)
      return setFaults([
        { field: input ? 'output_schema' : 'input_schema', message: text.notSchema },
      ])
    await attempt(async () => {
      const { input_schema, output_schema, endpoint_url, tags, ...rest } = changes
      const isSaved = await edits.update('action.update', {
        project,
        action_name: action.name,
        ...rest,
        ...(input_schema !== undefined && { input_schema: input }),
        ...(output_schema !== undefined && { output_schema: output }),
        ...(endpoint_url !== undefined && { endpoint_url: endpoint_url.trim() }),
        ...(tags && { tags: tagsOf(tags) }),
      })
      if (!isSaved) return
      onSaved()
      showDone(text.saved)
    })
  }
  const field = (path: 'title' | 'description' | 'endpoint_url') => ({
    label: labels[path],
    value: shown[path],
    disabled,
    fault: faultAt(faults, path),
    onValue: (value: string) => set({ [path]: value }),
  })
  const schema = (path: 'input_schema' | 'output_schema') => (
    <JsonField
      label={labels[path]}
      path={path}
      faults={faults}
      rows={6}
      value={shown[path]}
      readOnly={disabled}
      check={checkSchema}
      onValue={(value) => set({ [path]: value })}
    />
  )
  const mark = (name: string, label: string) => (
    <Checkbox
      label={label}
      disabled={disabled}
      checked={shown.annotations[name] === true}
      onChecked={(checked) => set({ annotations: { ...shown.annotations, [name]: checked } })}
    />
  )
  return (
    <form class="stack settings" noValidate onSubmit={(event) => event.preventDefault()}>
      <TextField {...field('title')} maxLength={160} />
      <TextArea {...field('description')} />
      {action.endpoint_kind === 'http' && (
        <>
          <TextField {...field('endpoint_url')} hint={text.endpointHint} />
          <SelectField
            label={labels.invocation_format}
            value={shown.invocation_format}
            disabled={disabled}
            choices={[
              { value: 'signed_context_v1', label: text.signed },
              { value: 'legacy', label: text.legacy },
            ]}
            onValue={(format) =>
              set({ invocation_format: format === 'legacy' ? 'legacy' : 'signed_context_v1' })
            }
          />
        </>
      )}
      {schema('input_schema')}
      {schema('output_schema')}
      <fieldset class="form-part">
        <legend>{labels.annotations}</legend>
        {mark('read_only', text.isReadOnly)}
        {mark('idempotent', text.isIdempotent)}
        {mark('destructive', text.isDestructive)}
      </fieldset>
      <TagFields
        tags={shown.tags}
        faults={faults}
        disabled={disabled}
        onTags={(tags) => set({ tags })}
      />
      {!disabled && (
        <SaveEdits edits={edits} labels={labels} isValid={areTagsValid(shown.tags)} onSave={save} />
      )}
    </form>
  )
}
