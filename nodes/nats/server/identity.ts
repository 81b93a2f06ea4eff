/**
 * The credential of NATS servers that this program starts: random for each start, and known only to
 * this process and, through files with mode 0600, to its user. Clients prove that they hold the
 * seed of a key pair. The server's configuration contains only the public key, so another program
 * that listens on the port of a stopped server receives no secret
 * (https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/nkey_auth).
 * The servers of a cluster authenticate to each other by password, because routes do not support
 * keys.
 */

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import { writePrivate } from '../../storage/private.ts'

export interface Identity {
  /** Seed of the clients' key pair, base32 (`SU…`). */
  readonly seed: string
  /** Public key of the same pair (`U…`). */
  readonly public_key: string
  /** Password for the routes between servers. */
  readonly route_password: string
}

/** Creates a random identity. */
export function createIdentity(): Identity {
  const pair = nkeys.createUser()
  return {
    seed: new TextDecoder().decode(pair.getSeed()),
    public_key: pair.getPublicKey(),
    route_password: randomBytes(24).toString('hex'),
  }
}

/** Returns the path of the seed file in a server's data folder. */
export const seedFile = (folder: string): string => join(folder, 'client.nk')

/** Stores the seed for commands of the same user, such as `baton backup`. */
export const keepSeed = (folder: string, { seed }: Identity): void =>
  writePrivate(seedFile(folder), `${seed}\n`)

/**
 * Returns the seed that the server in a folder accepts; undefined if the folder has no seed.
 * @throws Error when the file exists but cannot be read, for example because it belongs to another
 *   user.
 */
export function keptSeed(folder: string): string | undefined {
  try {
    return readFileSync(seedFile(folder), 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
