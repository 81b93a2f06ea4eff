/** The page to which a person returns after signing in. */

/** Returns `wanted` if it is a path of this origin other than the sign-in page, otherwise `/`. */
export function returnTarget(wanted: string | null): string {
  if (wanted === null || !/^\/(?![/\\])/.test(wanted) || wanted.startsWith('/sign-in')) return '/'
  return wanted
}
