/** The hidden input with which a button opens the browser's dialog for files. */
import type { RefObject } from 'preact'

/**
 * Lets a person choose any number of files.
 * @param props.picker refers to the input, whose `click` opens the dialog.
 * @param props.label the name of the input for assistive technology.
 */
export const FileInput = ({
  picker,
  label,
  onPick,
}: {
  readonly picker: RefObject<HTMLInputElement | null>
  readonly label?: string
  onPick(files: readonly File[]): void
}) => (
  <input
    ref={picker}
    type="file"
    multiple
    hidden
    aria-label={label}
    onChange={({ currentTarget }) => {
      const files = [...(currentTarget.files ?? [])]
      // Allows the same file to be chosen again.
      currentTarget.value = ''
      onPick(files)
    }}
  />
)
