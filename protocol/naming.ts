/** Names that are derived or reserved. Actors and the edge share these rules. */
import type { FieldError } from './errors.ts'

/**
 * Returns the handle of a name: lower case, every run of other characters replaced by one hyphen,
 * at most 64 characters. Accents are dropped. The handle is empty when the name has no Latin letter
 * and no digit.
 */
export const slug = (name: string): string =>
  name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, 64)
    .replace(/-$/, '')

/** Cuts a text to at most `most` characters, never inside a character. */
export const cut = (text: string, most: number): string =>
  text.length <= most
    ? text
    : Array.from(text.slice(0, 2 * most))
        .slice(0, most)
        .join('')

/**
 * Returns one fault for each tag that only the service itself may set: its key starts with the
 * brand.
 * @param brand header brand in any letter case.
 */
export const reservedTags = (
  tags: Readonly<Record<string, string>> | undefined,
  brand: string,
): FieldError[] =>
  Object.keys(tags ?? {})
    .filter((key) => key.toLowerCase().startsWith(`${brand.toLowerCase()}:`))
    .map((key) => ({
      field: `tags.${key}`,
      message: `keys that start with ${brand.toLowerCase()}: are reserved`,
      actual: key,
    }))

const PUBLISHED = 'workflow.'
/**
 * The handle of the published workflow that an action name refers to; undefined when the action is
 * not a workflow.
 */
export const publishedHandle = (action: string): string | undefined =>
  action.startsWith(PUBLISHED) ? action.slice(PUBLISHED.length) : undefined

/**
 * Returns the faults of an action name that only the service itself may define: a name below the
 * brand, or that of a published workflow.
 * @param brand header brand in any letter case.
 */
export const reservedActionName = (name: string, brand: string): FieldError[] =>
  [`${brand.toLowerCase()}.`, 'workflow.']
    .filter((prefix) => name.startsWith(prefix))
    .map((prefix) => ({
      field: 'name',
      message: `names that start with ${prefix} are reserved`,
      actual: name,
    }))
/** The header brand of an installation that sets none. */
export const DEFAULT_BRAND = 'Service'
/**
 * The product name in pages and documents: the configured brand, otherwise the product's own name.
 */
export const productName = (brand: string): string => (brand === DEFAULT_BRAND ? 'Baton' : brand)
/**
 * The reference by which a receiver finds the secret that signed a call.
 * @param brand header brand in any letter case.
 * @param of name of a project's action, id of an organization's action, or id of a webhook.
 */
export const secretRef = (
  brand: string,
  kind: 'action' | 'org-action' | 'webhook',
  of: string,
): string => `${brand.toLowerCase()}/${kind}/${of}`
/** A count with its noun in the singular or plural. */
export const plural = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`
