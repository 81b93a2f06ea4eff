/** Matches permissions against the granted permissions of roles. */

/**
 * Returns whether a granted permission covers another. The granted permission may end in a
 * wildcard. Its prefix with the name of the product is ignored.
 */
export function covers(granted: string, wanted: string): boolean {
  const plain =
    granted === '*' || granted.startsWith('actions.') ? granted : granted.replace(/^[^.]+\./, '')
  if (plain === '*') return true
  return plain.endsWith('*') ? wanted.startsWith(plain.slice(0, -1)) : plain === wanted
}
