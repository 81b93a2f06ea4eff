/** The editor of one cell. */
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Column } from '../../../../protocol/tables/schema.ts'
import { ApiError } from '../../../api/client.ts'
import { showError } from '../../../design/notify.ts'
import { guardUnload } from '../../../router/router.ts'
import { tablesText as text } from '../text.ts'
import { typedValue } from '../values.ts'
import { memberFault } from './save.ts'

/** Where the active cell moves after an edit. */
export type After = 'down' | 'next' | 'previous' | 'stay'

/**
 * Edits a value in place. Enter stores it, Escape cancels, Tab stores it and edits the next cell.
 * @param props.store stores a value. Throws an `ApiError` if the service refuses the value.
 */
export function CellEditor({
  column,
  initial,
  long,
  store,
  onEnd,
}: {
  readonly column: Column
  readonly initial: string
  readonly long: boolean
  readonly store: (value: unknown) => Promise<void>
  readonly onEnd: (after: After, edited: boolean) => void
}) {
  const [value, setValue] = useState(initial)
  const [fault, setFault] = useState<string>()
  const [saving, setSaving] = useState(false)
  const field = useRef<HTMLElement>(null)
  /** Whether the edit is being stored or has ended, so that it cannot be stored or cancelled. */
  const busy = useRef(false)
  const id = useId()
  useLayoutEffect(() => guardUnload(() => value !== initial), [value])
  // The focus is set synchronously, so the next key press reaches the field.
  useLayoutEffect(() => {
    field.current?.focus({ preventScroll: true })
    if (field.current instanceof HTMLInputElement) field.current.select()
  }, [])
  const commit = async (after: After): Promise<void> => {
    if (busy.current) return
    const typed = typedValue(value, column)
    if ('fault' in typed) return setFault(typed.fault)
    busy.current = true
    setSaving(true)
    try {
      await store(typed.value)
      return onEnd(after, after === 'next' || after === 'previous')
    } catch (error) {
      const named = error instanceof ApiError ? memberFault(error, column.name) : undefined
      if (named === undefined) showError(error)
      setFault(named ?? (error instanceof Error ? error.message : String(error)))
      field.current?.focus()
    }
    busy.current = false
    setSaving(false)
  }
  const cancel = (): void => {
    if (busy.current) return
    busy.current = true
    onEnd('stay', false)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    event.stopPropagation()
    if (event.key === 'Escape') {
      event.preventDefault()
      cancel()
    } else if (event.key === 'Tab') {
      event.preventDefault()
      void commit(event.shiftKey ? 'previous' : 'next')
    } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault()
      void commit('down')
    }
  }
  const common = {
    class: long ? 'cell-field long' : 'cell-field',
    'aria-label': column.name,
    'aria-invalid': fault !== undefined,
    'aria-describedby': fault === undefined ? undefined : id,
    'aria-busy': saving,
    dir: 'auto' as const,
    onKeyDown,
    onBlur: () => {
      if (document.hasFocus() && fault === undefined && value !== initial) void commit('stay')
      else if (document.hasFocus() && value === initial) cancel()
    },
  }
  return (
    <div class="cell-editor" onDblClick={(event) => event.stopPropagation()}>
      {column.type === 'boolean' ? (
        <select
          {...common}
          ref={field as { current: HTMLSelectElement | null }}
          value={value}
          onChange={({ currentTarget }) => setValue(currentTarget.value)}
        >
          {!column.required && <option value="">{text.noValue}</option>}
          <option value="true">{text.yes}</option>
          <option value="false">{text.no}</option>
        </select>
      ) : long ? (
        <textarea
          {...common}
          ref={field as { current: HTMLTextAreaElement | null }}
          value={value}
          rows={8}
          spellcheck={false}
          onInput={({ currentTarget }) => setValue(currentTarget.value)}
        />
      ) : (
        <input
          {...common}
          ref={field as { current: HTMLInputElement | null }}
          value={value}
          inputMode={column.type === 'number' ? 'decimal' : 'text'}
          placeholder={column.type === 'date' ? text.dateHint : ''}
          onInput={({ currentTarget }) => {
            setValue(currentTarget.value)
            setFault(undefined)
          }}
        />
      )}
      {fault !== undefined && (
        <div class="cell-fault" id={id} role="alert">
          {fault}
        </div>
      )}
    </div>
  )
}
