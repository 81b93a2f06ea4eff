/** Names that are derived or reserved: one rule for actors and the edge. */
import type { FieldError } from './errors.ts'

/**
 * The handle of a name: lower case, every run of other characters one hyphen, at most 64 characters. Accents are dropped.
 * Empty when the name has no letter or digit of the Latin alphabet.
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

/** A text of at most so many characters: never cut inside one. */
export const cut = (text: string, most: number): string =>
  text.length <= most
    ? text
    : Array.from(text.slice(0, 2 * most))
        .slice(0, most)
        .join('')

/** Tags that only the service itself may set: keys that start with the brand. @param brand header brand in any case. */
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
/** The handle of the workflow that an action's name stands for; undefined: it is another action. */
export const publishedHandle = (action: string): string | undefined =>
  action.startsWith(PUBLISHED) ? action.slice(PUBLISHED.length) : undefined

/** Names of actions that only the service itself defines: those below the brand, and those of published workflows. @param brand header brand in any case. */
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
/** What pages and documents call the product: the brand that is set, otherwise its own name. */
export const productName = (brand: string): string => (brand === DEFAULT_BRAND ? 'Baton' : brand)
/** How a receiver finds the secret that a call was signed with. @param brand header brand in any case. @param of name of a project's action, id of one of the organization, or of a webhook. */
export const secretRef = (
  brand: string,
  kind: 'action' | 'org-action' | 'webhook',
  of: string,
): string => `${brand.toLowerCase()}/${kind}/${of}`
/** How many of something, in words. */
export const plural = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`
