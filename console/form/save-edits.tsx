/** The end of a form of edits: a notice of conflicts, and the button that saves. */
import { Button } from '../design/button.tsx'
import { Conflict } from './conflict.tsx'
import type { Edits } from './edits.ts'
import { formText as text } from './text.ts'

/**
 * Shows the notice while somebody else has changed an edited field. The button is enabled while
 * there are valid edits without conflicts.
 */
export const SaveEdits = <T extends object>({
  edits,
  labels,
  isValid,
  onSave,
}: {
  readonly edits: Edits<T>
  /** The labels of the fields, by name. */
  readonly labels: Readonly<Record<keyof T, string>>
  /** Whether the values can be sent. */
  readonly isValid: boolean
  readonly onSave: () => Promise<void>
}) => {
  const { conflicts, changes, stored } = edits
  return (
    <>
      {conflicts.length > 0 && (
        <Conflict
          names={conflicts}
          labels={labels}
          changes={changes as Readonly<Record<string, unknown>>}
          stored={stored as Readonly<Record<string, unknown>>}
          onKeep={edits.keep}
          onTake={edits.take}
        />
      )}
      <div>
        <Button
          kind="primary"
          submit
          disabled={!edits.isChanged || conflicts.length > 0 || !isValid}
          onClick={onSave}
        >
          {text.save}
        </Button>
      </div>
    </>
  )
}
