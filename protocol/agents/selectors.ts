/**
 * Matches selectors against actions in the catalog. All functions here are pure, so that gateways
 * and executors get the same result.
 */
import { getOwn } from '../lookup.ts'
import type { Selector } from '../toolkits/schema.ts'

/** The fields of a catalog entry that decide whether a selector matches it. */
export interface Named {
  readonly name: string
  /**
   * `platform`: the service defines the action; `custom`: the project or the organization defines
   * it.
   */
  readonly source: 'platform' | 'custom'
}
/** The names of the actions in each named group, by the name of the group. */
export type Groups = Readonly<Record<string, readonly string[]>>

/**
 * Whether a text matches a pattern in which `*` matches any sequence of characters, including dots.
 * Matching does not backtrack.
 */
export function globMatches(pattern: string, text: string): boolean {
  const parts = pattern.split('*')
  const first = parts[0] ?? ''
  if (parts.length === 1) return pattern === text
  const last = parts.at(-1) ?? ''
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last))
    return false
  let at = first.length
  const end = text.length - last.length
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

/**
 * Whether an action belongs to a group. If `groups` contains the group, its members are listed
 * there. Otherwise, its members are the actions whose names begin with the name of the group and a
 * dot.
 */
const inGroup = (group: string, name: string, groups: Groups): boolean =>
  Object.hasOwn(groups, group) ? (groups[group] ?? []).includes(name) : name.startsWith(`${group}.`)
/**
 * Whether an action has the source `prefix` and its name matches a pattern. The pattern may begin
 * with the source and a dot. A pattern that is only the source matches all actions of the source.
 */
const inSource = (
  selector: string,
  prefix: 'platform' | 'custom',
  { name, source }: Named,
): boolean =>
  source === prefix &&
  globMatches(
    selector === prefix
      ? '*'
      : selector.startsWith(`${prefix}.`)
        ? selector.slice(prefix.length + 1)
        : selector,
    name,
  )

/** Whether a selector matches an action. */
export function selects(
  { selector_type, selector }: Selector,
  entry: Named,
  groups: Groups,
): boolean {
  switch (selector_type) {
    case 'exact':
      return selector === entry.name
    case 'group':
      return inGroup(selector, entry.name, groups)
    case 'platform':
    case 'custom':
      return inSource(selector, selector_type, entry)
    case 'wildcard':
      return globMatches(selector, entry.name)
  }
}
/** Whether an entry of `allowed_tools` matches an action: by name, pattern, group or source. */
export function textSelects(text: string, entry: Named, groups: Groups): boolean {
  if (
    /^(platform|custom)\./.test(text) &&
    inSource(text, text.startsWith('platform') ? 'platform' : 'custom', entry)
  )
    return true
  return (
    globMatches(text, entry.name) ||
    inGroup(text.endsWith('.*') ? text.slice(0, -2) : text, entry.name, groups)
  )
}
/**
 * Returns permissions that together cover every action that a selector can match, including actions
 * that are defined later. A pattern that contains `*` yields a wildcard permission: only the part
 * up to the last dot before the first `*` is kept. For example, `crm.get*` yields
 * `actions.execute.crm.*`.
 */
export function permissionsOver(
  { selector_type, selector }: Selector,
  groups: Groups,
): readonly string[] {
  if (selector_type === 'exact') return [`actions.execute.${selector}`]
  if (selector_type === 'group')
    return (getOwn(groups, selector) ?? [`${selector}.*`]).map((name) => `actions.execute.${name}`)
  const pattern =
    selector_type === 'wildcard'
      ? selector
      : selector === selector_type
        ? '*'
        : selector.replace(new RegExp(`^${selector_type}\\.`), '')
  const star = pattern.indexOf('*')
  return [
    `actions.execute.${star < 0 ? pattern : `${pattern.slice(0, pattern.lastIndexOf('.', star) + 1)}*`}`,
  ]
}
/**
 * Converts a text to a selector: of type `wildcard` when the text contains a star, otherwise
 * `exact`.
 */
export const selectorOf = (text: string): Selector =>
  text.includes('*')
    ? { selector_type: 'wildcard', selector: text }
    : { selector_type: 'exact', selector: text }

/**
 * Returns the entries that match any of the selectors, in the order of the catalog (`matched`), and
 * the selectors that match no entry (`unmatched`).
 */
export function resolveSelectors<E extends Named>(
  selectors: readonly Selector[],
  entries: readonly E[],
  groups: Groups,
): { readonly matched: readonly E[]; readonly unmatched: readonly Selector[] } {
  return {
    matched: entries.filter((entry) =>
      selectors.some((selector) => selects(selector, entry, groups)),
    ),
    unmatched: selectors.filter(
      (selector) => !entries.some((entry) => selects(selector, entry, groups)),
    ),
  }
}
/** Returns the entries that a list of `allowed_tools` permits. An empty list permits all. */
export const allowedBy = <E extends Named>(
  allowed: readonly string[],
  entries: readonly E[],
  groups: Groups,
): readonly E[] =>
  allowed.length === 0
    ? entries
    : entries.filter((entry) => allowed.some((text) => textSelects(text, entry, groups)))
