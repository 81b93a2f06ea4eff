/** The page to which a person returns after signing in. */

/**
 * Returns `wanted` if it is a path of this origin other than the sign-in page, otherwise `/`.
 * Browsers ignore tabs and line breaks in URLs, so `/`, a tab and `/` begin the name of a host.
 */
export function returnTarget(wanted: string | null): string {
  if (wanted === null || !/^\/(?![/\\])[^\t\r\n]*$/.test(wanted)) return '/'
  return wanted.startsWith('/sign-in') ? '/' : wanted
}
