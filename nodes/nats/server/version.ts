/**
 * Version checks of nats-server. Versions before `MINIMUM` can lose acknowledged data or lack
 * features that the journal relies on.
 */

/** The oldest nats-server that is accepted. */
export const MINIMUM = '2.14.5'

/** Returns the first version in a text, such as `1.2.3`; undefined if it contains no version. */
export const versionIn = (text: string): string | undefined => /(\d+)\.(\d+)\.(\d+)/.exec(text)?.[0]

/** Compares two versions: negative when `a` is older. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) =>
    text.split('.').map((part) => Number.parseInt(part, 10) || 0),
  )
  for (let i = 0; i < 3; i++) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** Whether a server of this version is accepted. */
export const isAccepted = (version: string): boolean => compareVersions(version, MINIMUM) >= 0
