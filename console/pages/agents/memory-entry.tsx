/** The dialog that adds or changes a memory entry of an agent. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useRefusal } from '../../api/refusal.ts'
import { Checkbox, SelectField, TextArea, TextField } from '../../design/field.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Failure } from '../../design/states.tsx'
import { useChanged } from '../../form/unsaved.ts'
import { agentsText as text } from './text.ts'

/** A stored entry of an agent's memory. */
export type MemoryEntry = CallReply<'memory.entries'>['items'][number]

const KINDS = [
  { value: 'fact', label: text.fact },
  { value: 'preference', label: text.preference },
  { value: 'episode', label: text.episode },
  { value: 'summary', label: text.summaryKind },
]

export function EntryDialog({
  project,
  agent,
  entry,
  onClose,
}: {
  readonly project: string
  readonly agent: string
  /** The entry to change; absent for a new one. */
  readonly entry?: MemoryEntry
  readonly onClose: () => void
}) {
  const [key, setKey] = useState(entry?.key ?? '')
  const [content, setContent] = useState(entry?.content ?? '')
  const [summary, setSummary] = useState(entry?.summary ?? '')
  const [kind, setKind] = useState<MemoryEntry['kind']>(entry?.kind ?? 'fact')
  const [importance, setImportance] = useState(String(entry?.importance ?? 50))
  const [pinned, setPinned] = useState(entry?.pinned ?? false)
  const { isChanged } = useChanged([content, summary, kind, importance, pinned])
  const { attempt, errorBeside, faultOf } = useRefusal()
  const save = async (): Promise<void> => {
    await attempt(async () => {
      await call('memory.save', {
        project,
        id: agent,
        memory_key: key.trim(),
        content,
        kind,
        pinned,
        importance: Number(importance),
        ...(summary.trim() !== '' && { summary: summary.trim() }),
        ...(entry?.metadata && { metadata: entry.metadata }),
      })
      onClose()
    })
  }
  const remaining = errorBeside(
    'content',
    'summary',
    'importance',
    ...(entry ? [] : ['memory_key']),
  )
  return (
    <Dialog title={entry ? text.edit(entry.key) : text.memoryAdd} onClose={onClose} wide>
      <form class="stack" onSubmit={(event) => event.preventDefault()}>
        {!entry && (
          <TextField
            label={text.key}
            hint={text.keyHint}
            value={key}
            fault={faultOf('memory_key')}
            onValue={setKey}
          />
        )}
        <TextArea
          label={text.content}
          value={content}
          rows={6}
          maxLength={16_384}
          fault={faultOf('content')}
          onValue={setContent}
        />
        <TextField
          label={text.summary}
          value={summary}
          maxLength={140}
          fault={faultOf('summary')}
          onValue={setSummary}
        />
        <div class="grid">
          <SelectField
            label={text.kind}
            value={kind}
            choices={KINDS}
            onValue={(value) => setKind(value as MemoryEntry['kind'])}
          />
          <TextField
            label={text.importance}
            type="number"
            min={0}
            max={100}
            value={importance}
            fault={faultOf('importance')}
            onValue={setImportance}
          />
        </div>
        <Checkbox label={text.pinned} checked={pinned} onChecked={setPinned} />
        {remaining && <Failure error={remaining} />}
        <DialogActions
          onClose={onClose}
          action={text.save}
          submit
          disabled={(entry !== undefined && !isChanged) || key.trim() === '' || content === ''}
          onClick={save}
        />
      </form>
    </Dialog>
  )
}
