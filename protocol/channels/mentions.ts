/** Mentions in a message: `@` and an agent's name or id, in any case. */

const isWord = (text: string | undefined): boolean =>
  text !== undefined && /[\p{L}\p{N}_]/u.test(text)

/** The maximum number of `@` positions examined in a text; each is compared with every name. */
const PLACES = 500

/**
 * The mention positions of a text: for each, the agents whose names match there and the lengths of
 * these names.
 * @param agents names by id.
 */
function placesOf(
  text: string,
  agents: Readonly<Record<string, string>>,
): (readonly [id: string, length: number])[][] {
  if (!text.includes('@')) return []
  const low = text.toLowerCase()
  const names = Object.entries(agents)
    .flatMap(([id, name]) => [[id, name.toLowerCase()] as const, [id, id.toLowerCase()] as const])
    .filter(([, name]) => name !== '')
  const found: (readonly [string, number])[][] = []
  let places = 0
  for (
    let at = low.indexOf('@');
    at >= 0 && places < PLACES;
    at = low.indexOf('@', at + 1), places++
  ) {
    if (isWord(low[at - 1])) continue
    const fit = names.flatMap(([id, name]) =>
      low.startsWith(name, at + 1) && !isWord(low[at + 1 + name.length])
        ? [[id, name.length] as const]
        : [],
    )
    if (fit.length > 0) found.push(fit)
  }
  return found
}

/**
 * Ids of the agents that a text mentions, each once. Where several names match, the longest wins:
 * `@ops-bot` does not mention `ops` when there is an `ops-bot`. Agents whose names differ only in
 * case are all mentioned. An `@` in the middle of a word, as in an email address, mentions no
 * agent.
 * @param agents names by id, of the agents that can be mentioned.
 */
export function mentionsOf(text: string, agents: Readonly<Record<string, string>>): string[] {
  return [
    ...new Set(
      placesOf(text, agents).flatMap((fit) => {
        const longest = Math.max(...fit.map(([, length]) => length))
        return fit.flatMap(([id, length]) => (length === longest ? [id] : []))
      }),
    ),
  ]
}
/**
 * Whether the mentions of a text depend on which of these agents can be mentioned: the names of
 * several match at one position.
 */
export const isAmbiguous = (text: string, agents: Readonly<Record<string, string>>): boolean =>
  placesOf(text, agents).some((fit) => new Set(fit.map(([id]) => id)).size > 1)
