/**
 * Mentions of agents in the text of a message: `@`, followed by the name or id of an agent. Letter
 * case is ignored.
 */

const isWord = (text: string | undefined): boolean =>
  text !== undefined && /[\p{L}\p{N}_]/u.test(text)

/**
 * The maximum number of `@` characters in a text that are examined, because each is compared with
 * every name.
 */
const MAX_POSITIONS = 500

/**
 * Returns one list for each position at which a text mentions agents. The list contains the ids of
 * the agents whose names or ids match at the position, each with the length of the match.
 * @param agents names of the agents that can be mentioned, by id.
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
    at >= 0 && places < MAX_POSITIONS;
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
 * Returns the ids of the agents that a text mentions, each once. Where several names match at one
 * position, the longest wins: `@ops-bot` does not mention `ops` if there is an agent `ops-bot`.
 * Agents whose names differ only in case are all mentioned. An `@` directly after a letter, a digit
 * or an underscore, as in an e-mail address, mentions no agent.
 * @param agents names of the agents that can be mentioned, by id.
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
 * Whether several of these agents match at the same position in a text. If so, `mentionsOf` can
 * return a different agent when one of them is left out.
 */
export const isAmbiguous = (text: string, agents: Readonly<Record<string, string>>): boolean =>
  placesOf(text, agents).some((fit) => new Set(fit.map(([id]) => id)).size > 1)
