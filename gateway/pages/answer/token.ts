/**
 * The token of an answer link: the interaction, the person, the review round and the expiry, sealed
 * by the installation for this purpose only. The content is authenticated but not encrypted. Links
 * are not stored. A link becomes invalid when its person has answered, and when the round or the
 * interaction ends. These checks are in `answer.ts`.
 */
import { timingSafeEqual } from 'node:crypto'
import type { World } from '../../ports.ts'

/** The content of a link. */
export interface LinkClaim {
  readonly project: string
  readonly interaction: string
  readonly target: string
  readonly round: number
  /** Expiry of the interaction in Unix milliseconds. Absent when it has none. */
  readonly expires?: number
}
type Sealer = Pick<World, 'seal'>

const SEAL = 20
const MAX_TOKEN_LENGTH = 2048
const sealOf = (world: Sealer, text: string): Uint8Array =>
  world.seal(`answer link\n${text}`).subarray(0, SEAL)

/** Creates the token of a link. */
export function linkToken(
  world: Sealer,
  { project, interaction, target, round, expires }: LinkClaim,
): string {
  const text = JSON.stringify([project, interaction, target, round, expires ?? 0])
  return Buffer.concat([sealOf(world, text), Buffer.from(text)]).toString('base64url')
}

/** The content of a token. Undefined when this installation did not issue the token. */
export function readToken(world: Sealer, token: string): LinkClaim | undefined {
  if (token.length > MAX_TOKEN_LENGTH) return undefined
  const bytes = Buffer.from(token, 'base64url')
  const text = bytes.subarray(SEAL).toString()
  // Base64 decoding ignores invalid characters and unused bits. This check accepts only the text
  // that was issued.
  if (
    bytes.length <= SEAL ||
    bytes.toString('base64url') !== token ||
    !timingSafeEqual(bytes.subarray(0, SEAL), sealOf(world, text))
  )
    return undefined
  const [project, interaction, target, round, expires] = JSON.parse(text) as [
    string,
    string,
    string,
    number,
    number,
  ]
  return { project, interaction, target, round, ...(expires > 0 && { expires }) }
}
