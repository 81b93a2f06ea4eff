/** A form field for the expiry of a new key or token, and its choices. */
import type { FaultOf } from '../../../api/refusal.ts'
import { SelectField } from '../../../design/field.tsx'
import { accessText as text } from '../text.ts'

const DAY_MS = 86_400_000
/** The choices. The values are lifetimes in days; '' means no expiry. */
const choices = [
  { value: '90', label: text.days(90) },
  { value: '7', label: text.days(7) },
  { value: '30', label: text.days(30) },
  { value: '365', label: text.days(365) },
  { value: '', label: text.never },
] as const

/**
 * Returns the request member `expires_at` for a choice; an empty object if the key never expires.
 */
export const expiryOf = (days: string, now: number): { readonly expires_at?: string } =>
  days === '' ? {} : { expires_at: new Date(now + Number(days) * DAY_MS).toISOString() }

/** The choice that a form starts with. */
export const usualExpiry: string = choices[0].value

/** The field for the expiry. `value` is a choice, as for `expiryOf`. */
export const ExpiryField = ({
  value,
  faultOf,
  onValue,
}: {
  readonly value: string
  readonly faultOf: FaultOf
  readonly onValue: (value: string) => void
}) => (
  <SelectField
    label={text.expires}
    choices={choices}
    fault={faultOf('expires_at')}
    value={value}
    onValue={onValue}
  />
)
