/** Matches permissions against the granted permissions of roles. */

/**
 * Returns whether a granted permission, which may end in a wildcard, covers another one. The brand
 * prefix of the granted permission is ignored.
 */
export function covers(granted: string, wanted: string): boolean {
  const plain =
    granted === '*' || granted.startsWith('actions.') ? granted : granted.replace(/^[^.]+\./, '')
  if (plain === '*') return true
  return plain.endsWith('*') ? wanted.startsWith(plain.slice(0, -1)) : plain === wanted
}
