/** Where a person goes after signing in. */

/** Returns the address to open: the wanted one if it is a path of the console, else `/`. */
export function returnTarget(wanted: string | null): string {
  if (wanted === null || !/^\/(?![/\\])/.test(wanted) || wanted.startsWith('/sign-in')) return '/'
  return wanted
}
