/** The rules for URLs that clients store and the service calls later. */

/**
 * Returns the fault of a URL without an accepted scheme, or with a user or a password, which would
 * be stored and shown in clear text. Returns undefined for a URL without a fault.
 * @param schemes accepted schemes with their colons, such as `https:`.
 * @param rule the message for a URL that is not absolute or has another scheme.
 */
export function urlFault(
  url: string,
  schemes: readonly string[],
  rule: string,
): string | undefined {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !schemes.includes(parsed.protocol)) return rule
  return parsed.username !== '' || parsed.password !== ''
    ? 'must not contain a user or a password'
    : undefined
}
/** Returns the fault of a valid URL with a fragment, or undefined. */
export const fragmentFault = (url: string): string | undefined =>
  new URL(url).hash === '' ? undefined : 'must not have a fragment'
