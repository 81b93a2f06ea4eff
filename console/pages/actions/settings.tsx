/**
 * Shows and edits the definition of an action of the project: its URL, texts, schemas and secret.
 */
import { useState } from 'preact/hooks'
import { schemaFaults } from '../../../protocol/rules/json-schema/schema.ts'
import { type CallReply, call, type FieldFault } from '../../api/client.ts'
import { useSave } from '../../api/save.ts'
import { Button } from '../../design/button.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm } from '../../design/overlay.tsx'
import { JsonField } from '../../editor/field.tsx'
import { useFaults } from '../../form/faults.ts'
import { useUnsaved } from '../../form/unsaved.ts'
import { faultAt } from '../../form/value.ts'
import { may } from '../../shell/session.ts'
import { jsonObject, objectText } from '../build/object.ts'
import { areTagsValid, TagFields, tagsOf, writtenTags } from '../build/tags.tsx'
import { SecretDialog } from './create.tsx'
import { actionsText as text } from './text.ts'

type Action = CallReply<'action.get'>
const checkSchema = (value: unknown): readonly FieldFault[] => schemaFaults(value, '')

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
  const [title, setTitle] = useState(action.title ?? '')
  const [description, setDescription] = useState(action.description ?? '')
  const [url, setUrl] = useState(action.endpoint_url ?? '')
  const [format, setFormat] = useState(action.invocation_format)
  const [input, setInput] = useState(objectText(action.input_schema))
  const [output, setOutput] = useState(objectText(action.output_schema))
  const known = (action.annotations ?? {}) as Readonly<Record<string, boolean | undefined>>
  const [marks, setMarks] = useState(known)
  const [tags, setTags] = useState(writtenTags(action.tags))
  const { faults, setFaults, attempt } = useFaults()
  const disabled = !may('project.edit')
  const isHttp = action.endpoint_kind === 'http'
  const update = useSave(action)
  const values = [title, description, url, format, input, output, marks, tags]
  const { isChanged, saved } = useUnsaved(values)
  const save = async (): Promise<void> => {
    const [input_schema, output_schema] = [jsonObject(input), jsonObject(output)]
    if (!input_schema || !output_schema)
      return setFaults([
        { field: input_schema ? 'output_schema' : 'input_schema', message: text.notSchema },
      ])
    await attempt(async () => {
      await update('action.update', {
        project,
        action_name: action.name,
        title,
        description,
        tags: tagsOf(tags),
        annotations: marks,
        ...(input !== objectText(action.input_schema) && { input_schema }),
        ...(output !== objectText(action.output_schema) && { output_schema }),
        ...(isHttp && format !== action.invocation_format && { invocation_format: format }),
        ...(isHttp && url !== action.endpoint_url && { endpoint_url: url.trim() }),
      })
      saved()
      onSaved()
      showDone(text.saved)
    })
  }
  const schema = (label: string, path: string, value: string, onValue: (text: string) => void) => (
    <JsonField
      label={label}
      path={path}
      faults={faults}
      rows={6}
      value={value}
      readOnly={disabled}
      check={checkSchema}
      onValue={onValue}
    />
  )
  const mark = (name: string, label: string) => (
    <Checkbox
      label={label}
      disabled={disabled}
      checked={marks[name] === true}
      onChecked={(checked) => setMarks({ ...marks, [name]: checked })}
    />
  )
  return (
    <form class="stack settings" noValidate onSubmit={(event) => event.preventDefault()}>
      <TextField
        label={text.actionTitle}
        value={title}
        disabled={disabled}
        maxLength={160}
        fault={faultAt(faults, 'title')}
        onValue={setTitle}
      />
      <TextArea
        label={text.description}
        value={description}
        disabled={disabled}
        fault={faultAt(faults, 'description')}
        onValue={setDescription}
      />
      {isHttp && (
        <>
          <TextField
            label={text.endpoint}
            hint={text.endpointHint}
            value={url}
            disabled={disabled}
            fault={faultAt(faults, 'endpoint_url')}
            onValue={setUrl}
          />
          <SelectField
            label={text.format}
            value={format}
            disabled={disabled}
            choices={[
              { value: 'signed_context_v1', label: text.signed },
              { value: 'legacy', label: text.legacy },
            ]}
            onValue={(next) => setFormat(next === 'legacy' ? 'legacy' : 'signed_context_v1')}
          />
        </>
      )}
      {schema(text.inputSchema, 'input_schema', input, setInput)}
      {schema(text.outputSchema, 'output_schema', output, setOutput)}
      <fieldset class="form-part">
        <legend>{text.annotations}</legend>
        {mark('read_only', text.isReadOnly)}
        {mark('idempotent', text.isIdempotent)}
        {mark('destructive', text.isDestructive)}
      </fieldset>
      <TagFields tags={tags} faults={faults} disabled={disabled} onTags={setTags} />
      {!disabled && (
        <div>
          <Button kind="primary" submit disabled={!isChanged || !areTagsValid(tags)} onClick={save}>
            {text.save}
          </Button>
        </div>
      )}
    </form>
  )
}
