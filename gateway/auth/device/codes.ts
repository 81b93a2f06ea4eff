/** The two codes of a device that signs in: the long one that only the device knows, and the short one that a person types. */
import { hexOf } from '../../http/hex.ts'
import type { World } from '../../ports.ts'

/** Letters of user codes: no vowels, so that they spell no words, and none that looks like another (RFC 8628, section 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'
const LENGTH = 8
/** Bytes from here on are drawn again, so that every letter is as likely as any other. */
const FAIR = 256 - (256 % LETTERS.length)
const DEVICE_CODE_BYTES = 32

/** A new device code. */
export const newDeviceCode = (world: Pick<World, 'random'>): string =>
  hexOf(world.random(DEVICE_CODE_BYTES))
/** Id of a request, from its device code: the code itself is not stored. */
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
/** A user code as it is stored, from what a person typed; undefined when it cannot be one. */
export function readUserCode(text: string): string | undefined {
  const letters = text.toUpperCase().replace(/[\s-]+/g, '')
  return letters.length === LENGTH && [...letters].every((letter) => LETTERS.includes(letter))
    ? written(letters)
    : undefined
}
const written = (letters: string): string => `${letters.slice(0, 4)}-${letters.slice(4)}`
