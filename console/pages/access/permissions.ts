/** Permissions on actions, which roles name one by one or as a family. */

const ACTION = 'actions.execute.'
/** Returns whether a permission is about actions. */
export const isAction = (permission: string): boolean => permission.startsWith(ACTION)

/** Reads permissions on actions from lines. The prefix may be omitted. */
export const actionPermissionsOf = (lines: string): readonly string[] => [
  ...new Set(
    lines
      .split(/[\s,]+/)
      .filter((line) => line !== '')
      .map((line) => (line.startsWith(ACTION) ? line : `${ACTION}${line}`)),
  ),
]

/** Returns whether a role with these permissions allows a permission of the catalog. */
export const allowsIt = (held: readonly string[], wanted: string): boolean =>
  held.some((one) => one === wanted || (one.endsWith('*') && wanted.startsWith(one.slice(0, -1))))
