/**
 * The token of an answer link: the interaction, the person, the review round and the expiry, sealed
 * by the installation (`../../http/sealed-token.ts`). Links are not stored. A link becomes invalid
 * when its person has answered, and when the round or the interaction ends. These checks are in
 * `answer.ts`.
 */
import { openToken, type Sealer, sealToken } from '../../http/sealed-token.ts'

/** The content of a link. */
export interface LinkClaim {
  readonly project: string
  readonly interaction: string
  readonly target: string
  readonly round: number
  /** Expiry of the interaction in Unix milliseconds. Absent if the interaction does not expire. */
  readonly expires?: number
}
const PURPOSE = 'answer link'

/** Creates the token of a link. Equal claims yield equal tokens. */
export const linkToken = (
  world: Sealer,
  { project, interaction, target, round, expires }: LinkClaim,
): string => sealToken(world, PURPOSE, [project, interaction, target, round, expires ?? 0])

/** Returns the content of a token, or undefined when this installation did not issue the token. */
export function readToken(world: Sealer, token: string): LinkClaim | undefined {
  const content = openToken(world, PURPOSE, token)
  if (!content) return undefined
  const [project, interaction, target, round, expires] = content as [
    string,
    string,
    string,
    number,
    number,
  ]
  return { project, interaction, target, round, ...(expires > 0 && { expires }) }
}
