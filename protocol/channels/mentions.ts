/** Whom a message calls: `@` and the name of an agent, or its id, in any case. */

const isWord = (text: string | undefined): boolean =>
  text !== undefined && /[\p{L}\p{N}_]/u.test(text)

/** Places of a text that are looked at: each is compared with every name. */
const PLACES = 500

/** The places of a text that call somebody: at each the agents whose names fit, with how long these are. @param agents names by id. */
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
 * Ids of the agents that a text calls, each once. Where several names fit at one place, the longest is meant: `@ops-bot` does
 * not call `ops` when there is an `ops-bot`; agents whose names differ only in case are all called. What stands in the middle of
 * a word, such as an address, calls nobody.
 * @param agents names by id, of those who can be called.
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
/** Whether it matters to a text who of these agents can be called: at one place the names of several fit. */
export const isAmbiguous = (text: string, agents: Readonly<Record<string, string>>): boolean =>
  placesOf(text, agents).some((fit) => new Set(fit.map(([id]) => id)).size > 1)
