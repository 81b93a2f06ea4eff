/** Form fields: a label, a control, a hint, and the fault that the service reported. */
import type { ComponentChildren, InputHTMLAttributes } from 'preact'
import { useId } from 'preact/hooks'
import { Icon } from './icons.tsx'

interface FieldProps {
  readonly label: string
  readonly hint?: ComponentChildren
  /** Fault of the value, such as a message in `ApiError.fields`. */
  readonly fault?: string | undefined
  /** Whether the label is visually hidden. Screen readers still read it. */
  readonly unlabelled?: boolean
}
interface ControlProps {
  readonly id: string
  readonly class: string
  readonly 'aria-invalid': boolean
  readonly 'aria-describedby': string | undefined
}

/** Lays out a control with its label, hint and fault. */
export function Field({
  label,
  hint,
  fault,
  unlabelled = false,
  control,
}: FieldProps & { readonly control: (props: ControlProps) => ComponentChildren }) {
  const id = useId()
  const described = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label class={unlabelled ? 'unseen' : 'label'} for={id}>
        {label}
      </label>
      {control({
        id,
        class: 'input',
        'aria-invalid': fault !== undefined,
        'aria-describedby': described || undefined,
      })}
      {hint && (
        <div class="hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
      {fault && (
        <div class="fault" id={`${id}-fault`}>
          {fault}
        </div>
      )}
    </div>
  )
}

/** Attributes of a text control that a page can set. */
interface TextAttributes {
  readonly name?: string
  readonly placeholder?: string
  readonly required?: boolean
  readonly disabled?: boolean
  readonly autocomplete?: string
  readonly spellcheck?: boolean
  readonly maxLength?: number
  readonly onKeyDown?: (event: KeyboardEvent) => void
}
interface InputAttributes extends TextAttributes {
  readonly type?: 'text' | 'password' | 'number' | 'email' | 'url' | 'date' | 'datetime-local'
  readonly min?: string | number
  readonly max?: string | number
  readonly step?: string | number
  /** Id of a `datalist` with suggestions. */
  readonly list?: string
}
/** A field with one line of text, a number, a date or a password (`type`). */
export const TextField = ({
  label,
  hint,
  fault,
  unlabelled,
  value,
  onValue,
  ...rest
}: FieldProps &
  InputAttributes & { readonly value: string; readonly onValue: (value: string) => void }) => (
  <Field
    {...{ label, hint, fault, unlabelled: unlabelled ?? false }}
    control={(props) => (
      <input
        dir="auto"
        {...(rest as InputHTMLAttributes<HTMLInputElement>)}
        {...props}
        value={value}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
    )}
  />
)

interface AreaAttributes extends TextAttributes {
  readonly rows?: number
}
/** A field with several lines of text. */
export const TextArea = ({
  label,
  hint,
  fault,
  unlabelled,
  value,
  onValue,
  ...rest
}: FieldProps &
  AreaAttributes & { readonly value: string; readonly onValue: (value: string) => void }) => (
  <Field
    {...{ label, hint, fault, unlabelled: unlabelled ?? false }}
    control={(props) => (
      <textarea
        dir="auto"
        {...rest}
        {...props}
        value={value}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
    )}
  />
)

/** An option of a select field. */
export interface Choice {
  readonly value: string
  readonly label: string
  readonly disabled?: boolean
}
/** A field for choosing one of several values. */
export const SelectField = ({
  label,
  hint,
  fault,
  unlabelled,
  value,
  choices,
  onValue,
  disabled,
}: FieldProps & {
  readonly value: string
  readonly choices: readonly Choice[]
  readonly onValue: (value: string) => void
  readonly disabled?: boolean
}) => (
  <Field
    {...{ label, hint, fault, unlabelled: unlabelled ?? false }}
    control={(props) => (
      <select
        {...props}
        value={value}
        disabled={disabled}
        onChange={({ currentTarget }) => onValue(currentTarget.value)}
      >
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value} disabled={choice.disabled}>
            {choice.label}
          </option>
        ))}
      </select>
    )}
  />
)

/** A checkbox with its label. */
export const Checkbox = ({
  label,
  checked,
  onChecked,
  disabled,
}: {
  readonly label: ComponentChildren
  readonly checked: boolean
  readonly onChecked: (checked: boolean) => void
  readonly disabled?: boolean
}) => (
  <label class="choice">
    <input
      type="checkbox"
      checked={checked}
      disabled={disabled}
      onChange={({ currentTarget }) => onChecked(currentTarget.checked)}
    />
    <span>{label}</span>
  </label>
)

/** A search field. */
export function SearchField({
  label,
  value,
  onValue,
}: {
  readonly label: string
  readonly value: string
  readonly onValue: (value: string) => void
}) {
  return (
    <div class="search">
      <Icon name="search" />
      <input
        class="input"
        type="search"
        dir="auto"
        aria-label={label}
        placeholder={label}
        value={value}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
    </div>
  )
}
