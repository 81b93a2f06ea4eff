/** Dialogs with a form. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { type FaultOf, useRefusal } from '../api/refusal.ts'
import { showError } from '../design/notify.ts'
import { Dialog, DialogActions } from '../design/overlay.tsx'
import { Failure } from '../design/states.tsx'

/** A dialog with a form. A refusal is shown above the fields, and its faults next to the fields. */
export function FormDialog({
  title,
  action,
  wide = false,
  danger = false,
  disabled = false,
  onSubmit,
  onClose,
  children,
}: {
  readonly title: string
  /** Text of the button that submits. */
  readonly action: string
  readonly wide?: boolean
  readonly danger?: boolean
  readonly disabled?: boolean
  /** Sends the form. The caller closes the dialog after a success. */
  readonly onSubmit: () => Promise<unknown>
  readonly onClose: () => void
  readonly children: (faultOf: FaultOf) => ComponentChildren
}) {
  const { error, faultOf, attempt } = useRefusal()
  const [pending, setPending] = useState(false)
  const submit = async (): Promise<void> => {
    setPending(true)
    try {
      await attempt(onSubmit)
    } catch (failure) {
      showError(failure)
    } finally {
      setPending(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (!pending) void submit()
        }}
      >
        {error && <Failure error={error} />}
        {children(faultOf)}
        <DialogActions
          action={action}
          danger={danger}
          submit
          busy={pending}
          disabled={disabled}
          onClose={onClose}
        />
      </form>
    </Dialog>
  )
}
