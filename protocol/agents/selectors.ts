/**
 * Which actions a selector names. Everything here is a pure function over what the catalog lists, so that the edge, a turn
 * and a test ask the same question.
 */
import type { Selector } from '../toolkits/schema.ts'

/** What of a catalog entry decides whether a selector names it. */
export interface Named {
  readonly name: string
  /** `platform`: of the service; `custom`: of the project or the organization. */
  readonly source: 'platform' | 'custom'
}
/** Named groups of actions, by name: the names of their members. */
export type Groups = Readonly<Record<string, readonly string[]>>

/** Whether a text matches a pattern in which `*` stands for any characters, also none and dots. Linear but for the number of stars. */
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

/** The members of a group: those of a named one, else all actions whose names lie below it. */
const inGroup = (group: string, name: string, groups: Groups): boolean =>
  Object.hasOwn(groups, group) ? (groups[group] ?? []).includes(name) : name.startsWith(`${group}.`)
/** A pattern over one source; the source's name in front of it may be left out. */
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

/** Whether a selector names an action. */
export function selects(
  { selector_type, selector }: Selector,
  entry: Named,
  groups: Groups = {},
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
/** Whether a text as `allowed_tools` spell it names an action: by name, by group, by source or by pattern. */
export function textSelects(text: string, entry: Named, groups: Groups = {}): boolean {
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
 * The permission that covers every action that a selector names, now and later. Patterns are covered by the part in front of
 * their first star that ends in a dot, because only such a part is a permission.
 */
export function permissionOver({ selector_type, selector }: Selector): string {
  if (selector_type === 'exact') return `actions.execute.${selector}`
  if (selector_type === 'group') return `actions.execute.${selector}.*`
  const pattern =
    selector_type === 'wildcard'
      ? selector
      : selector === selector_type
        ? '*'
        : selector.replace(new RegExp(`^${selector_type}\\.`), '')
  const star = pattern.indexOf('*')
  return `actions.execute.${star < 0 ? pattern : `${pattern.slice(0, pattern.lastIndexOf('.', star) + 1)}*`}`
}
/** The selector of a text: a pattern when it has a star, else a name. */
export const selectorOf = (text: string): Selector =>
  text.includes('*')
    ? { selector_type: 'wildcard', selector: text }
    : { selector_type: 'exact', selector: text }

/** The entries that selectors name together, in the catalog's order, and the selectors that name none. */
export function resolveSelectors<E extends Named>(
  selectors: readonly Selector[],
  entries: readonly E[],
  groups: Groups = {},
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
/** The entries that a list of `allowed_tools` lets through; an empty list lets all through. */
export const allowedBy = <E extends Named>(
  allowed: readonly string[],
  entries: readonly E[],
  groups: Groups = {},
): readonly E[] =>
  allowed.length === 0
    ? entries
    : entries.filter((entry) => allowed.some((text) => textSelects(text, entry, groups)))
