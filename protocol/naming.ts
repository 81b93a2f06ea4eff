/**
 * Rules for derived and reserved names, and helpers for texts. Actors and gateways share these
 * rules.
 */

import type { FieldError } from './errors.ts'
import { cutText } from './rules/cut-text.ts'

/**
 * Converts a name to a handle: lower-case Latin letters (without accents) and digits, with one
 * hyphen in place of each sequence of other characters, and at most 64 characters. A handle neither
 * begins nor ends with a hyphen. It is empty when the name has no Latin letter and no digit.
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

/**
 * Returns the name under which a model or an MCP client sees an action: letters, digits, `_` and
 * `-`, at most 64 characters. Names of different actions may become equal.
 */
export const toolName = (action: string): string =>
  action.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)

/** Shortens a text to at most `most` characters (code points), without a part of a grapheme. */
export const cut = (text: string, most: number): string =>
  text.length <= most
    ? text
    : cutText(
        text,
        Array.from(text.slice(0, 2 * most))
          .slice(0, most)
          .join('').length,
      )

/**
 * Returns a fault for each tag whose key begins with the brand and a colon. Only the service itself
 * may set such tags.
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
 * Returns the handle of the published workflow that an action name refers to, or undefined for
 * other actions.
 */
export const publishedHandle = (action: string): string | undefined =>
  action.startsWith(PUBLISHED) ? action.slice(PUBLISHED.length) : undefined

/**
 * Returns a fault if an action name is reserved. Names that begin with the brand and a dot are
 * reserved for built-in actions. The other prefixes are reserved for published workflows and for
 * actions of environments.
 * @param brand header brand in any letter case.
 */
export const reservedActionName = (name: string, brand: string): FieldError[] =>
  [`${brand.toLowerCase()}.`, 'workflow.', 'environment.']
    .filter((prefix) => name.startsWith(prefix))
    .map((prefix) => ({
      field: 'name',
      message: `names that start with ${prefix} are reserved`,
      actual: name,
    }))
/** The header brand of an installation that configures no brand. */
export const DEFAULT_BRAND = 'Service'
/**
 * Returns the product name for pages and documents: the configured brand, otherwise the name of the
 * product itself.
 */
export const productName = (brand: string): string => (brand === DEFAULT_BRAND ? 'Baton' : brand)
/**
 * Returns the reference that a receiver uses to identify the secret that signs calls or deliveries.
 * @param brand header brand in any letter case.
 * @param of the name of a project action, the id of an organization action, or the id of a webhook.
 */
export const secretRef = (
  brand: string,
  kind: 'action' | 'org-action' | 'webhook',
  of: string,
): string => `${brand.toLowerCase()}/${kind}/${of}`
/** Returns a count with its noun in the singular or plural. */
export const plural = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`
