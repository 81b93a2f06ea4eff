/** Detects unsaved changes to a form, and asks for confirmation before the page is left. */
import { createContext } from 'preact'
import { useContext, useLayoutEffect, useState } from 'preact/hooks'
import { designText } from '../design/text.ts'
import { guardLeaving } from '../router/router.ts'

/** The function with which a form reports unsaved changes; provided by `UntouchedForm`. */
export const Touch = createContext<() => void>(() => {})

/** While a form has unsaved changes, asks for confirmation before the page is left. */
export function useLeaveQuestion(isChanged: boolean): void {
  const touch = useContext(Touch)
  // A layout effect, so that the guard exists as soon as the page shows the change.
  useLayoutEffect(() => {
    if (!isChanged) return undefined
    // Buttons can change values too, but cause no `input` event, so the change is reported here.
    touch()
    return guardLeaving(() => designText.leave)
  }, [isChanged])
}

interface Unsaved {
  readonly isChanged: boolean
  /** Must be called after the current values were saved. */
  readonly saved: () => void
}
/**
 * Compares the values of a form with its initial values, but does not ask for confirmation before
 * the page is left. Used for forms in dialogs, because a dialog asks by itself.
 * @param values everything that saving would send. It must be JSON-serializable.
 */
export function useChanged(values: unknown): Unsaved {
  const now = JSON.stringify(values)
  const [start, setStart] = useState(now)
  return { isChanged: now !== start, saved: () => setStart(now) }
}
/**
 * Works like `useChanged`, and also asks for confirmation before the page is left while there are
 * unsaved changes. Used for forms in pages.
 */
export function useUnsaved(values: unknown): Unsaved {
  const unsaved = useChanged(values)
  useLeaveQuestion(unsaved.isChanged)
  return unsaved
}
