/** The form fields for tags, which are key-value pairs. */
import type { FieldFault } from '../../api/client.ts'
import { Button, IconButton } from '../../design/button.tsx'
import { TextField } from '../../design/field.tsx'
import { faultAt, repeatedNames } from '../../form/value.ts'
import { tagsText as text } from './tags-text.ts'

/** A tag as typed. Its key may still be empty. */
export interface WrittenTag {
  readonly key: string
  readonly value: string
}
/** Converts tags to the pairs that the fields show. */
export const writtenTags = (tags: Readonly<Record<string, string>> = {}): readonly WrittenTag[] =>
  Object.entries(tags).map(([key, value]) => ({ key, value }))
/**
 * Returns the fault of each pair whose tag would be lost: another pair has the same key, or a value
 * has no key.
 */
function tagFaults(written: readonly WrittenTag[]): readonly (string | undefined)[] {
  const repeated = repeatedNames(written.map(({ key }) => key.trim()))
  return written.map(({ key, value }) =>
    repeated.has(key.trim())
      ? text.repeated
      : key.trim() === '' && value !== ''
        ? text.keyMissing
        : undefined,
  )
}
/** Whether no pair has a fault (`tagFaults`). */
export const areTagsValid = (written: readonly WrittenTag[]): boolean =>
  tagFaults(written).every((fault) => fault === undefined)
/** Converts valid pairs in the fields to tags. Empty pairs are left out. */
export const tagsOf = (written: readonly WrittenTag[]): Record<string, string> =>
  Object.fromEntries(
    written.filter(({ key }) => key.trim() !== '').map(({ key, value }) => [key.trim(), value]),
  )
/** Maximum number of tags, as in the service (`Tags` in `protocol/common.ts`). */
const MAX_TAGS = 8

/**
 * Shows a row for each pair, and a button that adds a pair while there are fewer than `MAX_TAGS`.
 */
export function TagFields({
  tags,
  faults,
  disabled,
  onTags,
}: {
  readonly tags: readonly WrittenTag[]
  readonly faults: readonly FieldFault[]
  readonly disabled: boolean
  readonly onTags: (tags: readonly WrittenTag[]) => void
}) {
  const own = tagFaults(tags)
  const change = (at: number, part: Partial<WrittenTag>): void =>
    onTags(tags.map((tag, index) => (index === at ? { ...tag, ...part } : tag)))
  return (
    <fieldset class="form-part">
      <legend>{text.tags}</legend>
      {tags.map(({ key, value }, index) => (
        <div class="form-item" key={index}>
          <div class="grow">
            <TextField
              label={text.key}
              value={key}
              disabled={disabled}
              fault={own[index] ?? faultAt(faults, `tags.${key}`, true)}
              onValue={(next) => change(index, { key: next })}
            />
          </div>
          <div class="grow">
            <TextField
              label={text.value}
              value={value}
              disabled={disabled}
              onValue={(next) => change(index, { value: next })}
            />
          </div>
          {!disabled && (
            <IconButton
              icon="trash"
              label={text.remove(key)}
              onClick={() => onTags(tags.filter((_, at) => at !== index))}
            />
          )}
        </div>
      ))}
      {!disabled && tags.length < MAX_TAGS && (
        <div>
          <Button icon="plus" onClick={() => onTags([...tags, { key: '', value: '' }])}>
            {text.add}
          </Button>
        </div>
      )}
    </fieldset>
  )
}
