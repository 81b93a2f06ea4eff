/** The listeners of this process, by subject: exact ones in a map, those with wildcards one by one. */

export interface Listener {
  readonly subject: string
  readonly handler: (message: unknown, subject: string) => unknown
  readonly group: string | undefined
}

export interface Listeners {
  /** Returns a function that removes it. */
  add(listener: Listener): () => void
  /** Every listener that hears a subject. Members of a group begin with another one each time. */
  matching(subject: string): readonly Listener[]
  /** Who gets a published message: all without a group and one of each group; `groups` are the groups among them. */
  chosen(subject: string): { readonly listening: readonly Listener[]; readonly groups: readonly string[] }
}

/** Whether a subject matches a pattern in which `*` stands for one token and a final `>` for one or more. */
export function matches(pattern: readonly string[], subject: readonly string[]): boolean {
  for (let i = 0; i < pattern.length; i++) {
    if (pattern[i] === '>') return subject.length > i
    if (i >= subject.length || (pattern[i] !== '*' && pattern[i] !== subject[i])) return false
  }
  return pattern.length === subject.length
}

export function createListeners(): Listeners {
  const exact = new Map<string, Set<Listener>>()
  /** Of each pattern its tokens, and the text before its first wildcard, which most subjects do not begin with. */
  const patterns = new Map<Listener, { readonly tokens: readonly string[]; readonly prefix: string }>()
  let turn = 0

  const matching = (subject: string): Listener[] => {
    const found = [...(exact.get(subject) ?? [])]
    let tokens: readonly string[] | undefined
    for (const [listener, pattern] of patterns) {
      if (subject.startsWith(pattern.prefix) && matches(pattern.tokens, (tokens ??= subject.split('.')))) found.push(listener)
    }
    if (found.length < 2) return found
    const start = turn++ % found.length
    return [...found.slice(start), ...found.slice(0, start)]
  }
  return {
    add: (listener) => {
      const tokens = listener.subject.split('.')
      if (tokens.includes('*') || tokens.at(-1) === '>') {
        patterns.set(listener, { tokens, prefix: listener.subject.slice(0, listener.subject.search(/[*>]/)) })
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
      const groups = new Set<string>()
      const listening = matching(subject).filter(({ group }) => {
        if (group === undefined) return true
        if (groups.has(group)) return false
        groups.add(group)
        return true
      })
      return { listening, groups: [...groups] }
    },
  }
}
