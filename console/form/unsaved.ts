/** Changes of a form that are not saved yet. */
import { createContext } from 'preact'
import { useContext, useLayoutEffect, useState } from 'preact/hooks'
import { designText } from '../design/text.ts'
import { guardLeaving } from '../router/router.ts'

/** The function by which a form reports that it has unsaved changes; provided by `UntouchedForm`. */
export const Touch = createContext<() => void>(() => {})

/** Asks for confirmation before the page is left, while a form has unsaved changes. */
export function useLeaveQuestion(isChanged: boolean): void {
  const touch = useContext(Touch)
  // A layout effect, so that the guard exists as soon as the page shows the change.
  useLayoutEffect(() => {
    if (!isChanged) return undefined
    // Buttons change values, too, without an event of input.
    touch()
    return guardLeaving(() => designText.leave)
  }, [isChanged])
}

interface Unsaved {
  readonly isChanged: boolean
  /** To be called after the current values were saved. */
  readonly saved: () => void
}
/**
 * Compares the values of a form with those that it started with. For the form of a dialog, which
 * guards its input itself.
 * @param values all that saving would send, as JSON.
 */
export function useChanged(values: unknown): Unsaved {
  const now = JSON.stringify(values)
  const [start, setStart] = useState(now)
  return { isChanged: now !== start, saved: () => setStart(now) }
}
/** Compares as `useChanged` does, and guards unsaved changes. For the form of a page. */
export function useUnsaved(values: unknown): Unsaved {
  const unsaved = useChanged(values)
  useLeaveQuestion(unsaved.isChanged)
  return unsaved
}
