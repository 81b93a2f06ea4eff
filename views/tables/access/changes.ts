/** Masks and merges attribute changes for the audit log. */
import { maskUrl } from '../../../protocol/masked-url.ts'
import type { Changes } from '../../../protocol/workflows/rows.ts'

/** Masks the query values of URLs, which events of earlier releases contain in plain text. */
export const maskChanges = (changes: Changes | undefined): Changes | undefined =>
  changes &&
  mapped(changes, (change, field) =>
    field === 'url' || field === 'endpoint_url'
      ? mapped(change, (side) => (typeof side === 'string' ? maskUrl(side) : side))
      : change,
  )
const mapped = <T>(
  record: Readonly<Record<string, T>>,
  change: (value: T, name: string) => T,
): Record<string, T> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]))

/**
 * Merges later changes to a record into earlier changes. The change `{}` is kept. It states that an
 * attribute has changed, without its values. A change whose `from` and `to` are both undefined is
 * dropped.
 */
export function mergeChanges(earlier: Changes, later: Changes): Changes {
  const all = { ...earlier }
  for (const [name, change] of Object.entries(later)) {
    const { from, to } = change
    if (Object.keys(change).length === 0) all[name] ??= {}
    else if (from !== undefined || to !== undefined)
      all[name] = { from: (earlier[name] ?? { from }).from, to }
  }
  return all
}
