/** The general settings of a project, as a form that is saved as a whole. */
import { useState } from 'preact/hooks'
import type { CallReply } from '../../api/client.ts'
import { useRefusal } from '../../api/refusal.ts'
import { useSave } from '../../api/save.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton } from '../../design/copy.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Failure, Notice } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { useLeaveQuestion } from '../../form/unsaved.ts'
import { loadSession, may } from '../../shell/session.ts'
import { changedSettings, type Settings, settingsOf } from './changes.ts'
import { settingsText as text } from './text.ts'

type Project = CallReply<'project.get'>

/** Shows the form. It is read-only without `project.admin`. */
export function General({
  of,
  project,
  onSaved,
  onSettled,
}: {
  readonly of: Project
  readonly project: string
  readonly onSaved: () => void
  /** Called after the form was saved, or its changes were discarded. */
  readonly onSettled: () => void
}) {
  const saved = settingsOf(of)
  const [edited, setEdited] = useState<Partial<Settings>>({})
  const [seed, setSeed] = useState(false)
  const { error, faultOf, attempt } = useRefusal()
  const shown: Settings = { ...saved, ...edited }
  const changes = changedSettings(saved, shown)
  const isChanged = Object.keys(changes).length > 0
  const mayChange = may('project.admin')
  const restricts = changes.access_mode === 'restricted'
  useLeaveQuestion(isChanged && mayChange)
  const update = useSave(of)
  const set = (part: Partial<Settings>): void => setEdited({ ...edited, ...part })
  const save = (): Promise<void> =>
    attempt(async () => {
      await update('project.update', {
        project,
        ...changes,
        ...(restricts && seed && { seed_existing_members: true }),
      })
      showDone(text.saved)
      setEdited({})
      onSettled()
      onSaved()
      await loadSession()
    })
  return (
    <form
      class="stack narrow"
      onSubmit={(event) => {
        event.preventDefault()
        if (isChanged && mayChange) void save()
      }}
    >
      {!mayChange && <Notice>{text.readOnly}</Notice>}
      {error && <Failure error={error} />}
      <TextField
        label={text.name}
        required
        maxLength={160}
        disabled={!mayChange}
        fault={faultOf('name')}
        value={shown.name}
        onValue={(name) => set({ name })}
      />
      <TextArea
        label={text.description}
        rows={2}
        maxLength={1024}
        disabled={!mayChange}
        fault={faultOf('description')}
        value={shown.description}
        onValue={(description) => set({ description })}
      />
      <TextField
        label={text.external}
        hint={text.externalHint}
        maxLength={256}
        disabled={!mayChange}
        fault={faultOf('external_ref')}
        value={shown.external_ref}
        onValue={(external_ref) => set({ external_ref })}
      />
      <SelectField
        label={text.access}
        disabled={!mayChange}
        choices={[
          { value: 'open', label: text.accessOpen },
          { value: 'restricted', label: text.accessRestricted },
        ]}
        fault={faultOf('access_mode')}
        value={shown.access_mode}
        onValue={(mode) => set({ access_mode: mode as Settings['access_mode'] })}
      />
      {restricts && <Checkbox label={text.seed} checked={seed} onChecked={setSeed} />}
      {(
        [
          ['separate_approver', text.approver, text.approverHint],
          ['email_notifications', text.email, text.emailHint],
          ['attachments', text.attachments, text.attachmentsHint],
        ] as const
      ).map(([name, label, hint]) => (
        <Checkbox
          key={name}
          disabled={!mayChange}
          checked={shown[name]}
          onChecked={(on) => set({ [name]: on })}
          label={
            <>
              {label}
              <span class="small soft block">{hint}</span>
            </>
          }
        />
      ))}
      <dl class="facts">
        <dt>{text.handle}</dt>
        <dd>
          <span class="mono">{of.handle}</span> <span class="small soft">{text.handleHint}</span>
        </dd>
        <dt>{text.id}</dt>
        <dd class="mono">
          {of.id} <CopyButton value={of.id} />
        </dd>
        <dt>{text.created}</dt>
        <dd>
          <Time at={of.created_at} />
        </dd>
        <dt>{text.changed}</dt>
        <dd>
          <Time at={of.updated_at} />
        </dd>
      </dl>
      {mayChange && (
        <div class="row">
          <Button kind="primary" submit disabled={!isChanged}>
            {text.save}
          </Button>
          <Button
            disabled={!isChanged}
            onClick={() => {
              setEdited({})
              onSettled()
            }}
          >
            {text.reset}
          </Button>
        </div>
      )}
    </form>
  )
}
