/** Patterns of URL paths, such as `/p/:project/runs/:id`. */

/** Returns the decoded parameters of a path that matches a pattern; otherwise undefined. */
export function matchPath(
  pattern: string,
  path: string,
): Readonly<Record<string, string>> | undefined {
  const wanted = pattern.split('/')
  const given = path.replace(/(.)\/$/, '$1').split('/')
  if (wanted.length !== given.length) return undefined
  const found: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? ''
    if (!part.startsWith(':')) {
      if (part !== value) return undefined
      continue
    }
    if (value === '') return undefined
    try {
      found[part.slice(1)] = decodeURIComponent(value)
    } catch {
      return undefined
    }
  }
  return found
}

/** Returns the path of a pattern with its parameters filled in. */
export const fillPath = (pattern: string, values: Readonly<Record<string, string>>): string =>
  pattern.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))
