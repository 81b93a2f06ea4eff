/**
 * The two codes of a device that signs in: the long one that only the device has, and the short one
 * that a person types.
 */
import { hexOf } from '../../http/hex.ts'
import type { World } from '../../ports.ts'

/**
 * Letters of user codes: without vowels, so that they form no words, and without letters that look
 * alike (RFC 8628, section 6.1).
 */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'
const LENGTH = 8
/** Random bytes from here on are discarded, so that every letter is equally likely. */
const FAIR = 256 - (256 % LETTERS.length)
const DEVICE_CODE_BYTES = 32

/** A new device code. */
export const newDeviceCode = (world: Pick<World, 'random'>): string =>
  hexOf(world.random(DEVICE_CODE_BYTES))
/** Id of a device request, derived from its device code, which is not stored. */
export const deviceId = (world: Pick<World, 'hash'>, deviceCode: string): string =>
  world.hash(`device code\n${deviceCode}`).slice(0, 40)

/** A new user code, such as `BCDF-GHJK`: 34 bits. */
export function newUserCode(world: Pick<World, 'random'>): string {
  let letters = ''
  while (letters.length < LENGTH)
    for (const byte of world.random(LENGTH))
      if (byte < FAIR && letters.length < LENGTH) letters += LETTERS.charAt(byte % LETTERS.length)
  return written(letters)
}
/**
 * A user code in its stored form, from the text that a person typed; undefined when it cannot be a
 * code.
 */
export function readUserCode(text: string): string | undefined {
  const letters = text.toUpperCase().replace(/[\s-]+/g, '')
  return letters.length === LENGTH && [...letters].every((letter) => LETTERS.includes(letter))
    ? written(letters)
    : undefined
}
const written = (letters: string): string => `${letters.slice(0, 4)}-${letters.slice(4)}`
