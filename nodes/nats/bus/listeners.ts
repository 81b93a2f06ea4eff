/**
 * The listeners of this process by subject. A map finds exact subjects. The wildcard patterns that
 * begin with the same token as a subject are checked one by one.
 */

export interface Listener {
  readonly subject: string
  readonly handler: (message: unknown, subject: string) => unknown
  readonly group: string | undefined
}

export interface Listeners {
  /**
   * Adds a listener and returns a function that removes it. The first token of the listener's
   * subject must not be a wildcard.
   */
  add(listener: Listener): () => void
  /** Whether the subject of any listener begins with this token. */
  hears(token: string): boolean
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
 * Whether the rest of a subject after the pattern's prefix matches the pattern's final wildcard.
 */
const endsWithin = (subject: string, { tokens, prefix }: Pattern): boolean =>
  subject.length > prefix.length && (tokens.at(-1) === '>' || !subject.includes('.', prefix.length))

/** The listeners whose subjects begin with the same token. */
interface Topic {
  readonly patterns: Map<Listener, Pattern>
  listeners: number
}
const topicOf = (subject: string): string => {
  const end = subject.indexOf('.')
  return end < 0 ? subject : subject.slice(0, end)
}

const noListeners: readonly Listener[] = []
const noGroups: readonly string[] = []
const noRecipients: ReturnType<Listeners['chosen']> = { listening: noListeners, groups: noGroups }

export function createListeners(): Listeners {
  /** The listeners of each subject without wildcards. A list is replaced when it changes. */
  const exact = new Map<string, readonly Listener[]>()
  const topics = new Map<string, Topic>()
  let turn = 0

  const matching = (subject: string): readonly Listener[] => {
    let found = exact.get(subject) ?? noListeners
    const topic = topics.get(topicOf(subject))
    if (topic && topic.patterns.size > 0)
      for (const [listener, pattern] of topic.patterns)
        if (
          subject.startsWith(pattern.prefix) &&
          (pattern.last
            ? endsWithin(subject, pattern)
            : matches(pattern.tokens, subject.split('.')))
        )
          found = [...found, listener]
    if (found.length < 2) return found
    const start = turn++ % found.length
    return [...found.slice(start), ...found.slice(0, start)]
  }
  const addExact = (listener: Listener): (() => void) => {
    const { subject } = listener
    exact.set(subject, [...(exact.get(subject) ?? noListeners), listener])
    return () => {
      const left = (exact.get(subject) ?? noListeners).filter((other) => other !== listener)
      if (left.length > 0) exact.set(subject, left)
      else exact.delete(subject)
    }
  }
  const addPattern = (listener: Listener, tokens: readonly string[], topic: Topic) => {
    const prefix = listener.subject.slice(0, listener.subject.search(/[*>]/))
    const last = prefix.length === listener.subject.length - 1
    topic.patterns.set(listener, { tokens, prefix, last })
    return () => void topic.patterns.delete(listener)
  }
  return {
    add: (listener) => {
      const tokens = listener.subject.split('.')
      const name = topicOf(listener.subject)
      const topic = topics.get(name) ?? { patterns: new Map(), listeners: 0 }
      topics.set(name, topic)
      topic.listeners++
      const remove =
        tokens.includes('*') || tokens.at(-1) === '>'
          ? addPattern(listener, tokens, topic)
          : addExact(listener)
      let added = true
      return () => {
        if (!added) return
        added = false
        remove()
        if (--topic.listeners === 0) topics.delete(name)
      }
    },
    hears: (token) => topics.has(token),
    matching,
    chosen: (subject) => {
      const found = matching(subject)
      if (found.length === 0) return noRecipients
      if (found.every(({ group }) => group === undefined))
        return { listening: found, groups: noGroups }
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
