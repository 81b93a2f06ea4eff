/** Forms of records that other people may change at the same time. */
import { type ComponentChildren, Fragment } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Touch } from './unsaved.ts'

/**
 * Shows the form of a record. When the record changes, a form without unsaved input is reset to the
 * new values. A form with unsaved input keeps its values, and saving it checks for conflicts
 * (`useSave`).
 * @param props.children renders the form with its initial values. The form calls `onSettled` after
 * it was saved, or after it has discarded its changes.
 */
export function UntouchedForm<T extends { readonly updated_at: string }>({
  record,
  children,
}: {
  readonly record: T
  readonly children: (record: T, onSettled: () => void) => ComponentChildren
}) {
  const isTouched = useRef(false)
  const [shown, setShown] = useState(record)
  const latest = useRef(record)
  latest.current = record
  if (!isTouched.current && shown.updated_at !== record.updated_at) setShown(record)
  const touch = (): void => {
    isTouched.current = true
  }
  const onSettled = (): void => {
    isTouched.current = false
    setShown(latest.current)
  }
  return (
    <div onInputCapture={touch} onChangeCapture={touch}>
      <Touch.Provider value={touch}>
        <Fragment key={shown.updated_at}>{children(shown, onSettled)}</Fragment>
      </Touch.Provider>
    </div>
  )
}
