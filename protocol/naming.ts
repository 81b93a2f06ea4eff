/** Names that are derived or reserved: one rule for actors and the edge. */
import type { FieldError } from './errors.ts'

/**
 * The handle of a name: lower case, every run of other characters one hyphen, at most 64 characters. Accents are dropped.
 * Empty when the name has no letter or digit of the Latin alphabet.
 */
export const slug = (name: string): string =>
  name.normalize('NFKD').replace(/\p{M}+/gu, '').toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-/, '').slice(0, 64).replace(/-$/, '')

/** Tags that only the service itself may set: keys that start with the brand. @param brand header brand in any case. */
export const reservedTags = (tags: Readonly<Record<string, string>> | undefined, brand: string): FieldError[] =>
  Object.keys(tags ?? {})
    .filter((key) => key.toLowerCase().startsWith(`${brand.toLowerCase()}:`))
    .map((key) => ({ field: `tags.${key}`, message: `keys that start with ${brand.toLowerCase()}: are reserved`, actual: key }))
