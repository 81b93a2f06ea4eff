/** Choices for the expiry of a key or token. */
import { accessText as text } from '../text.ts'

const DAY_MS = 86_400_000
/** Values are lifetimes in days; '' means no expiry. */
export const expiryChoices = [
  { value: '90', label: text.days(90) },
  { value: '7', label: text.days(7) },
  { value: '30', label: text.days(30) },
  { value: '365', label: text.days(365) },
  { value: '', label: text.never },
] as const

/** Returns the request member `expires_at` for a choice; no member for a key that never expires. */
export const expiryOf = (days: string, now: number): { readonly expires_at?: string } =>
  days === '' ? {} : { expires_at: new Date(now + Number(days) * DAY_MS).toISOString() }
