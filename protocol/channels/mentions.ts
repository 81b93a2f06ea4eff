/** Whom a message calls: `@` and the name of an agent, or its id, in any case. */

const isWord = (text: string | undefined): boolean => text !== undefined && /[\p{L}\p{N}_]/u.test(text)

/** Places of a text that are looked at: each is compared with every name. */
const PLACES = 500

/**
 * Ids of the agents that a text calls, each once. Where several names fit at one place, the longest is meant: `@ops-bot` does
 * not call `ops` when there is an `ops-bot`. What stands in the middle of a word, such as an address, calls nobody.
 * @param agents names by id.
 */
export function mentionsOf(text: string, agents: Readonly<Record<string, string>>): string[] {
  if (!text.includes('@')) return []
  const low = text.toLowerCase()
  const names = Object.entries(agents).flatMap(([id, name]) => [[id, name.toLowerCase()] as const, [id, id.toLowerCase()] as const]).filter(([, name]) => name !== '').sort(([, a], [, b]) => b.length - a.length)
  const called = new Set<string>()
  let places = 0
  for (let at = low.indexOf('@'); at >= 0 && places < PLACES; at = low.indexOf('@', at + 1), places++) {
    if (isWord(low[at - 1])) continue
    const found = names.find(([, name]) => low.startsWith(name, at + 1) && !isWord(low[at + 1 + name.length]))
    if (found) called.add(found[0])
  }
  return [...called]
}
