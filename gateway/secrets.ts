/**
 * Secrets of users at rest: sealed with AES-256-GCM under a key derived from the installation's secret, and bound to the place they
 * are for, so that a sealed text is of no use elsewhere.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { World } from './ports.ts'

const NONCE = 12
const TAG = 16
const keyOf = (world: Pick<World, 'seal'>): Uint8Array => world.seal('secrets at rest')

/** Seal a secret. @param place what it is for, such as the id of its record and a name. */
export function sealSecret(world: Pick<World, 'seal' | 'random'>, place: string, secret: string): string {
  const nonce = world.random(NONCE)
  const cipher = createCipheriv('aes-256-gcm', keyOf(world), nonce).setAAD(Buffer.from(place))
  const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return `s1.${Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')}`
}

/** The secret again; undefined when the text was not sealed here for this place. */
export function openSecret(world: Pick<World, 'seal'>, place: string, sealed: string): string | undefined {
  if (!sealed.startsWith('s1.')) return undefined
  const bytes = Buffer.from(sealed.slice(3), 'base64url')
  if (bytes.length < NONCE + TAG) return undefined
  try {
    const decipher = createDecipheriv('aes-256-gcm', keyOf(world), bytes.subarray(0, NONCE)).setAAD(Buffer.from(place))
    decipher.setAuthTag(bytes.subarray(NONCE, NONCE + TAG))
    return Buffer.concat([decipher.update(bytes.subarray(NONCE + TAG)), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}
