/** Matches permissions against the granted permissions of roles. */

/**
 * Returns whether a granted permission covers another one. The granted permission may end in a
 * wildcard. Unless it is `*` or a permission for actions, its first segment, the brand, is ignored.
 */
export function covers(granted: string, wanted: string): boolean {
  const plain =
    granted === '*' || granted.startsWith('actions.') ? granted : granted.replace(/^[^.]+\./, '')
  if (plain === '*') return true
  return plain.endsWith('*') ? wanted.startsWith(plain.slice(0, -1)) : plain === wanted
}
