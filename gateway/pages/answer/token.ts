/**
 * The token of an answer link: the interaction, the person, the round and the expiry, sealed with
 * the installation's secret for this purpose alone. Links are not stored: a link becomes invalid
 * with the answer that it gives, and with everything else that ends the round or the interaction.
 */
import { timingSafeEqual } from 'node:crypto'
import type { World } from '../../ports.ts'

/** The content of a link. */
export interface LinkClaim {
  readonly project: string
  readonly interaction: string
  readonly target: string
  readonly round: number
  /** Unix milliseconds; absent: valid for as long as the interaction is open. */
  readonly expires?: number
}
type Sealer = Pick<World, 'seal'>

const SEAL = 20
const MAX_TOKEN_LENGTH = 2048
const sealOf = (world: Sealer, text: string): Uint8Array =>
  world.seal(`answer link\n${text}`).subarray(0, SEAL)

/** The token of a link. */
export function linkToken(
  world: Sealer,
  { project, interaction, target, round, expires }: LinkClaim,
): string {
  const text = JSON.stringify([project, interaction, target, round, expires ?? 0])
  return Buffer.concat([sealOf(world, text), Buffer.from(text)]).toString('base64url')
}

/** The content of a link, or undefined when this installation did not issue it. */
export function readToken(world: Sealer, token: string): LinkClaim | undefined {
  if (token.length > MAX_TOKEN_LENGTH) return undefined
  const bytes = Buffer.from(token, 'base64url')
  const text = bytes.subarray(SEAL).toString()
  // Base64 decoding tolerates foreign characters and spare bits; this check accepts only the text
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
