/**
 * Tokens in URLs that this installation issues but does not store. The content of a token is
 * authenticated for one purpose, but not encrypted.
 */
import { timingSafeEqual } from 'node:crypto'
import type { World } from '../ports.ts'

export type Sealer = Pick<World, 'seal'>

/** Size of the signature of a token in bytes. */
const SEAL_BYTES = 20
/** Maximum length of a token in characters. Longer tokens are invalid. */
const MAX_TOKEN_LENGTH = 2048
const sealOf = (world: Sealer, purpose: string, text: string): Uint8Array =>
  world.seal(`${purpose}\n${text}`).subarray(0, SEAL_BYTES)

/**
 * Creates a token.
 * @param purpose the only purpose for which the token is valid.
 */
export function sealToken(world: Sealer, purpose: string, content: readonly unknown[]): string {
  const text = JSON.stringify(content)
  return Buffer.concat([sealOf(world, purpose, text), Buffer.from(text)]).toString('base64url')
}

/**
 * Returns the content of a token, or undefined when this installation did not issue the token for
 * the purpose.
 */
export function openToken(
  world: Sealer,
  purpose: string,
  token: string,
): readonly unknown[] | undefined {
  if (token.length > MAX_TOKEN_LENGTH) return undefined
  const bytes = Buffer.from(token, 'base64url')
  const text = bytes.subarray(SEAL_BYTES).toString()
  // Base64 decoding ignores invalid characters and unused bits. This check accepts only the text
  // that was issued.
  if (
    bytes.length <= SEAL_BYTES ||
    bytes.toString('base64url') !== token ||
    !timingSafeEqual(bytes.subarray(0, SEAL_BYTES), sealOf(world, purpose, text))
  )
    return undefined
  return JSON.parse(text) as readonly unknown[]
}
