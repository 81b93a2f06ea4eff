/**
 * The two codes of a device that signs in. The device code is long, and only the device stores it.
 * The user code is short, because a person types it. The requests that use the codes are in
 * `flow.ts`.
 */
import { hexOf } from '../../http/hex.ts'
import type { World } from '../../ports.ts'

/**
 * The character set that RFC 8628, section 6.1, suggests for user codes. It has no vowels, so codes
 * form no words.
 */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'
/** Number of letters of a user code. */
const CODE_LENGTH = 8
/** Random bytes from this value upwards are discarded, so that every letter is equally likely. */
const FAIR = 256 - (256 % LETTERS.length)
/** Number of random bytes of a device code. */
const DEVICE_CODE_BYTES = 32

/** Returns a new random device code, as hex. */
export const newDeviceCode = (world: Pick<World, 'random'>): string =>
  hexOf(world.random(DEVICE_CODE_BYTES))
/**
 * Returns the id of a device request, derived from the device code. The code itself is never
 * stored.
 */
export const deviceId = (world: Pick<World, 'hash'>, deviceCode: string): string =>
  world.hash(`device code\n${deviceCode}`).slice(0, 40)

/** Returns a new random user code, such as `BCDF-GHJK`, with 34 bits of entropy. */
export function newUserCode(world: Pick<World, 'random'>): string {
  let letters = ''
  while (letters.length < CODE_LENGTH)
    for (const byte of world.random(CODE_LENGTH))
      if (byte < FAIR && letters.length < CODE_LENGTH)
        letters += LETTERS.charAt(byte % LETTERS.length)
  return written(letters)
}
/**
 * Converts the text that a person typed to the stored form of a user code. Returns undefined when
 * the text cannot be a user code.
 */
export function readUserCode(text: string): string | undefined {
  const letters = text.toUpperCase().replace(/[\s-]+/g, '')
  return letters.length === CODE_LENGTH && [...letters].every((letter) => LETTERS.includes(letter))
    ? written(letters)
    : undefined
}
const written = (letters: string): string => `${letters.slice(0, 4)}-${letters.slice(4)}`
