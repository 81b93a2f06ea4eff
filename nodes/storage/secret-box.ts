/**
 * Encrypts values that must not be stored as plain text. The method is AES-256-GCM with a random
 * nonce of 96 bits (NIST SP 800-38D). The key is derived from the installation's secret. The
 * context, such as the owner of the value, is authenticated, so a value encrypted for one owner
 * cannot be decrypted for another.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { World } from '../../gateway/ports.ts'
import type { Random } from '../host/ports.ts'

/** Size of the nonce before the ciphertext, in bytes. */
const NONCE_BYTES = 12
/** Size of the authentication tag after the ciphertext, in bytes. */
const TAG_BYTES = 16

/**
 * Creates the encryption functions of an installation.
 * @param secret the installation's secret.
 */
export function createSecretBox(
  secret: Uint8Array,
  random: Random,
): Pick<World, 'lock' | 'unlock'> {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'baton lock v1', 32))
  return {
    lock: (bytes, context) => {
      const nonce = Buffer.from(random.bytes(NONCE_BYTES))
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context))
      const sealed = Buffer.concat([cipher.update(bytes), cipher.final()])
      return `v1.${Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url')}`
    },
    unlock: (text, context) => {
      const whole = text.startsWith('v1.')
        ? Buffer.from(text.slice(3), 'base64url')
        : Buffer.alloc(0)
      if (whole.length < NONCE_BYTES + TAG_BYTES) return undefined
      const opening = createDecipheriv('aes-256-gcm', key, whole.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(context))
        .setAuthTag(whole.subarray(whole.length - TAG_BYTES))
      try {
        return Buffer.concat([
          opening.update(whole.subarray(NONCE_BYTES, whole.length - TAG_BYTES)),
          opening.final(),
        ])
      } catch {
        return undefined
      }
    },
  }
}
