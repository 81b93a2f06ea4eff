/**
 * The listeners of this process by subject. A map finds exact subjects; wildcard patterns are
 * checked one by one.
 */

export interface Listener {
  readonly subject: string
  readonly handler: (message: unknown, subject: string) => unknown
  readonly group: string | undefined
}

export interface Listeners {
  /** Adds a listener and returns a function that removes it. */
  add(listener: Listener): () => void
  /**
   * Returns all listeners that match a subject. Their order rotates from call to call, so that
   * group members take turns.
   */
  matching(subject: string): readonly Listener[]
  /**
   * Returns the recipients of a published message: all listeners without a group and one listener
   * of each group. `groups` contains the groups of the recipients.
   */
  chosen(subject: string): {
    readonly listening: readonly Listener[]
    readonly groups: readonly string[]
  }
}

/**
 * Whether a subject matches a pattern, in which `*` matches one token and a final `>` one or more.
 */
export function matches(pattern: readonly string[], subject: readonly string[]): boolean {
  for (let i = 0; i < pattern.length; i++) {
    if (pattern[i] === '>') return subject.length > i
    if (i >= subject.length || (pattern[i] !== '*' && pattern[i] !== subject[i])) return false
  }
  return pattern.length === subject.length
}

/**
 * A parsed pattern: its tokens, the text before its first wildcard, and whether that wildcard is
 * the last character.
 */
interface Pattern {
  readonly tokens: readonly string[]
  readonly prefix: string
  readonly last: boolean
}
/**
 * Whether the rest of a subject after the pattern's prefix matches the wildcard with which the
 * pattern ends.
 */
const endsWithin = (subject: string, { tokens, prefix }: Pattern): boolean =>
  subject.length > prefix.length && (tokens.at(-1) === '>' || !subject.includes('.', prefix.length))

const nobody: readonly Listener[] = []
const none: ReturnType<Listeners['chosen']> = { listening: nobody, groups: [] }

export function createListeners(): Listeners {
  const exact = new Map<string, Set<Listener>>()
  const patterns = new Map<Listener, Pattern>()
  let turn = 0

  const matching = (subject: string): readonly Listener[] => {
    const here = exact.get(subject)
    let found: Listener[] | undefined = here && [...here]
    for (const [listener, pattern] of patterns) {
      if (
        !subject.startsWith(pattern.prefix) ||
        !(pattern.last ? endsWithin(subject, pattern) : matches(pattern.tokens, subject.split('.')))
      )
        continue
      if (found) found.push(listener)
      else found = [listener]
    }
    if (!found) return nobody
    if (found.length < 2) return found
    const start = turn++ % found.length
    return [...found.slice(start), ...found.slice(0, start)]
  }
  return {
    add: (listener) => {
      const tokens = listener.subject.split('.')
      if (tokens.includes('*') || tokens.at(-1) === '>') {
        const prefix = listener.subject.slice(0, listener.subject.search(/[*>]/))
        patterns.set(listener, {
          tokens,
          prefix,
          last: prefix.length === listener.subject.length - 1,
        })
        return () => void patterns.delete(listener)
      }
      const at = exact.get(listener.subject) ?? new Set()
      exact.set(listener.subject, at.add(listener))
      return () => {
        at.delete(listener)
        if (at.size === 0 && exact.get(listener.subject) === at) exact.delete(listener.subject)
      }
    },
    matching,
    chosen: (subject) => {
      const found = matching(subject)
      if (found.length === 0) return none
      const groups = new Set<string>()
      const listening = found.filter(({ group }) => {
        if (group === undefined) return true
        if (groups.has(group)) return false
        groups.add(group)
        return true
      })
      return { listening, groups: [...groups] }
    },
  }
}
