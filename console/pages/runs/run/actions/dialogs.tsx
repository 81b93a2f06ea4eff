/** The dialogs that act on a run. Field errors are shown next to their fields. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError, call, type FieldFault, randomKey } from '../../../../api/client.ts'
import { Button } from '../../../../design/button.tsx'
import { CopyCall } from '../../../../design/copy.tsx'
import { Checkbox, SelectField, TextField } from '../../../../design/field.tsx'
import { showDone } from '../../../../design/notify.ts'
import { Dialog } from '../../../../design/overlay.tsx'
import { Failure } from '../../../../design/states.tsx'
import { designText } from '../../../../design/text.ts'
import { go } from '../../../../router/router.ts'
import { useDraft } from '../../../../shell/drafts.ts'
import type { RunDetail } from '../data/live-run.ts'
import { ObjectField } from './input.tsx'
import { readObject, writeObject } from './json.ts'
import { actionText as text } from './text.ts'

/** A step that a dialog offers. */
export interface StepLabel {
  readonly key: string
  readonly label: string
}
/** Common props of the dialogs. `done` is called after the request has succeeded. */
export interface DialogProps {
  readonly project: string
  readonly id: string
  readonly onClose: () => void
  readonly done: () => void
}

/** Lays out a dialog with one action, and shows why the service refused it. */
function ActionDialog({
  title,
  hint,
  action,
  danger = false,
  disabled = false,
  run,
  onClose,
  onFaults,
  copy,
  children,
}: {
  readonly title: string
  readonly hint?: string
  readonly action: string
  readonly danger?: boolean
  readonly disabled?: boolean
  readonly run: () => Promise<void>
  readonly onClose: () => void
  readonly onFaults?: (faults: readonly FieldFault[]) => void
  /** A menu that copies the request. */
  readonly copy?: ComponentChildren
  readonly children?: ComponentChildren
}) {
  const [error, setError] = useState<ApiError>()
  const submit = async (): Promise<void> => {
    setError(undefined)
    try {
      await run()
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure
      setError(failure)
      onFaults?.(failure.fields)
      return
    }
    onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      {hint !== undefined && <p class="soft">{hint}</p>}
      {children}
      {error && <Failure error={error} />}
      <div class="actions">
        {copy}
        {copy && <span class="grow" />}
        <Button onClick={onClose}>{designText.close}</Button>
        <Button kind="primary" danger={danger} disabled={disabled} onClick={submit}>
          {action}
        </Button>
      </div>
    </Dialog>
  )
}

const Reason = ({
  value,
  onValue,
}: {
  readonly value: string
  readonly onValue: (value: string) => void
}) => (
  <TextField
    label={text.reason}
    hint={text.reasonHint}
    maxLength={1024}
    value={value}
    onValue={onValue}
  />
)
const reasonOf = (reason: string) => (reason.trim() === '' ? {} : { reason: reason.trim() })

/** Asks for confirmation, and cancels the run. */
export function CancelDialog({ project, id, onClose, done }: DialogProps) {
  const [reason, setReason] = useState('')
  return (
    <ActionDialog
      title={text.cancel}
      hint={text.cancelHint}
      action={text.cancel}
      danger
      onClose={onClose}
      run={async () => {
        await call('run.cancel', { project, id, ...reasonOf(reason) })
        showDone(text.canceled)
        done()
      }}
    >
      <Reason value={reason} onValue={setReason} />
    </ActionDialog>
  )
}

/** Asks for confirmation, and resumes the waiting run. */
export function ResumeDialog({ project, id, onClose, done }: DialogProps) {
  const [reason, setReason] = useState('')
  return (
    <ActionDialog
      title={text.resume}
      hint={text.resumeHint}
      action={text.resume}
      onClose={onClose}
      run={async () => {
        await call('run.resume', { project, id, ...reasonOf(reason) })
        showDone(text.resumed)
        done()
      }}
    >
      <Reason value={reason} onValue={setReason} />
    </ActionDialog>
  )
}

/**
 * Retries a failed run in place, starting from a chosen step. `from` is the key of the step that is
 * initially chosen; '' stands for the failed step.
 */
export function RetryDialog({
  project,
  id,
  detail,
  from,
  steps,
  onClose,
  done,
}: DialogProps & {
  readonly detail: RunDetail
  readonly from: string
  /** The steps that the run has reached. */
  readonly steps: readonly StepLabel[]
}) {
  const [step, setStep] = useState(from)
  const [reason, setReason] = useState('')
  const [budget, setBudget] = useState('')
  const ofLoop = 'loop_id' in detail
  const [changes, setChanges] = useState(false)
  const [input, setInput] = useState(() => writeObject(ofLoop ? undefined : detail.input))
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const typed = readObject(input)
  const exceeded = 'stop_reason' in detail && detail.stop_reason === 'budget_exceeded'
  return (
    <ActionDialog
      title={text.retryTitle}
      hint={text.retryHint}
      action={text.retry}
      disabled={changes && typed.value === undefined}
      onClose={onClose}
      onFaults={setFaults}
      run={async () => {
        await call('run.retry', {
          project,
          id,
          ...reasonOf(reason),
          ...(step !== '' && { from_step: step }),
          ...(changes && typed.value && { input: { ...typed.value } }),
          ...(budget !== '' && { budget_usd: Number(budget) }),
        })
        showDone(text.retried)
        done()
      }}
    >
      <SelectField
        label={text.retryFrom}
        value={step}
        choices={[
          { value: '', label: text.retryFailed },
          ...steps.map(({ key, label }) => ({ value: key, label })),
        ]}
        onValue={setStep}
      />
      {!ofLoop && <Checkbox label={text.changeInput} checked={changes} onChecked={setChanges} />}
      {changes && !ofLoop && (
        <ObjectField
          label={text.input}
          path="input"
          value={input}
          onValue={setInput}
          faults={faults}
          declared={detail.spec.input}
        />
      )}
      {exceeded && (
        <TextField
          label={text.budget}
          hint={text.budgetHint}
          type="number"
          min={0}
          step="any"
          value={budget}
          onValue={setBudget}
        />
      )}
      <Reason value={reason} onValue={setReason} />
    </ActionDialog>
  )
}

/** Sends a named signal or, if `steps` are given, completes one of these waiting steps. */
export function SignalDialog({
  project,
  id,
  name,
  steps,
  onClose,
  done,
}: DialogProps & {
  readonly name: string
  /** The waiting steps, one of which is completed. Without them, a signal is sent. */
  readonly steps?: readonly StepLabel[]
}) {
  const [signal, setSignal] = useState(name)
  const [step, setStep] = useState(steps?.[0]?.key ?? '')
  const member = steps ? 'result' : 'payload'
  const [payload, setPayload] = useDraft(`signal.${id}.${member}`)
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const [key] = useState(randomKey)
  const typed = readObject(payload)
  const chosen = steps ? step : signal.trim()
  const value = { ...typed.value }
  const input = steps
    ? { project, id, step_key: step, result: value }
    : { project, id, name: chosen, payload: value }
  return (
    <ActionDialog
      title={steps ? text.complete : text.signal}
      {...(steps && { hint: text.completeHint })}
      action={steps ? text.completeAction : text.send}
      disabled={typed.value === undefined || chosen === ''}
      copy={<CopyCall name="run.signal" input={input} />}
      onClose={onClose}
      onFaults={setFaults}
      run={async () => {
        await call('run.signal', input, { key })
        setPayload('')
        showDone(steps ? text.completed : text.sent)
        done()
      }}
    >
      {steps ? (
        <SelectField
          label={text.completeStep}
          value={step}
          choices={steps.map((one) => ({ value: one.key, label: one.label }))}
          onValue={setStep}
        />
      ) : (
        <TextField
          label={text.signalName}
          required
          value={signal}
          onValue={setSignal}
          fault={faults.find(({ field }) => field === 'name')?.message}
        />
      )}
      <ObjectField
        label={steps ? text.result : text.payload}
        path={member}
        value={payload}
        onValue={setPayload}
        faults={faults}
      />
    </ActionDialog>
  )
}

/** Starts a new run of the same definition with an input that can be changed. */
export function AgainDialog({
  project,
  id,
  detail,
  onClose,
}: Omit<DialogProps, 'done'> & { readonly detail: RunDetail }) {
  const ofLoop = 'loop_id' in detail
  const [draft, setDraft] = useDraft(`run-again.${id}`)
  const before = writeObject(ofLoop ? detail.event : detail.input)
  const input = draft === '' ? before : draft
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const [key] = useState(randomKey)
  const typed = readObject(input)
  const value = { ...typed.value }
  const ofTheLoop = { project, id: ofLoop ? detail.loop_id : '', event: value }
  const ofWorkflow = {
    project,
    input: value,
    ...(!ofLoop && { queue: detail.queue }),
    ...(ofLoop
      ? {}
      : detail.definition_id === ''
        ? { spec: detail.spec }
        : { definition_id: detail.definition_id }),
  }
  return (
    <ActionDialog
      copy={
        ofLoop ? (
          <CopyCall name="loop.start" input={ofTheLoop} />
        ) : (
          <CopyCall name="run.start" input={ofWorkflow} />
        )
      }
      title={text.againTitle}
      hint={`${text.againHint} ${!ofLoop && detail.definition_id === '' ? '' : text.againLatest}`}
      action={text.start}
      disabled={typed.value === undefined}
      onClose={onClose}
      onFaults={setFaults}
      run={async () => {
        const begun = ofLoop
          ? await call('loop.start', ofTheLoop, { key })
          : await call('run.start', ofWorkflow, { key })
        setDraft('')
        go(`/p/${encodeURIComponent(project)}/runs/${begun.id}`)
      }}
    >
      <ObjectField
        label={ofLoop ? text.event : text.input}
        path={ofLoop ? 'event' : 'input'}
        value={input}
        onValue={setDraft}
        faults={faults}
        declared={ofLoop ? undefined : detail.spec.input}
      />
    </ActionDialog>
  )
}

/** Asks for the run to compare with, and opens the comparison. */
export function CompareDialog({ project, id, onClose }: Omit<DialogProps, 'done'>) {
  const [other, setOther] = useState('')
  return (
    <ActionDialog
      title={text.compare}
      hint={text.compareHint}
      action={text.compareAction}
      disabled={other.trim() === ''}
      onClose={onClose}
      run={async () => {
        const query = new URLSearchParams({ a: other.trim(), b: id })
        go(`/p/${encodeURIComponent(project)}/runs/compare?${query}`)
      }}
    >
      <TextField label={text.compareWith} value={other} onValue={setOther} />
    </ActionDialog>
  )
}
