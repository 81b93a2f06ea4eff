/**
 * Parses and tests permissions to execute actions. A role lists single actions or patterns that end
 * with `*`.
 */

/** Prefix of the permissions to execute actions. */
const ACTION = 'actions.execute.'
/** Returns whether a permission allows the execution of actions. */
export const isAction = (permission: string): boolean => permission.startsWith(ACTION)

/** Parses action permissions separated by white space or commas. Their prefix may be omitted. */
export const actionPermissionsOf = (lines: string): readonly string[] => [
  ...new Set(
    lines
      .split(/[\s,]+/)
      .filter((line) => line !== '')
      .map((line) => (line.startsWith(ACTION) ? line : `${ACTION}${line}`)),
  ),
]

/** Returns whether a role with these permissions grants a permission of the catalog. */
export const allowsPermission = (held: readonly string[], wanted: string): boolean =>
  held.some((one) => one === wanted || (one.endsWith('*') && wanted.startsWith(one.slice(0, -1))))
