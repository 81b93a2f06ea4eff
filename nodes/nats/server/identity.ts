/**
 * The credential of NATS servers that this program starts: made at random for each start, known to this process and, in files
 * of mode 0600, to its owner. Clients prove that they hold the seed of a key pair; the server's configuration has the public
 * key only, and a program that listens on the port of a server that ended is shown no secret
 * (https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/nkey_auth).
 * Servers of a cluster know each other by a password, because routes know no keys.
 */
import { nkeys } from '@nats-io/transport-node'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writePrivate } from '../../storage/private.ts'

export interface Identity {
  /** Seed of the clients' key pair, base32 (`SU…`). */
  readonly seed: string
  /** Its public key (`U…`). */
  readonly public_key: string
  /** Password of the routes between servers. */
  readonly route_password: string
}

/** A new identity. */
export function createIdentity(): Identity {
  const pair = nkeys.createUser()
  return {
    seed: new TextDecoder().decode(pair.getSeed()),
    public_key: pair.getPublicKey(),
    route_password: randomBytes(24).toString('hex'),
  }
}

/** The file of a server's folder that holds the seed. */
export const seedFile = (folder: string): string => join(folder, 'client.nk')

/** Keep the seed for commands of the same user, such as `baton backup`. */
export const keepSeed = (folder: string, { seed }: Identity): void =>
  writePrivate(seedFile(folder), `${seed}\n`)

/** The seed that the server in a folder accepts; undefined when there is none. Throws when another user may not read it. */
export function keptSeed(folder: string): string | undefined {
  try {
    return readFileSync(seedFile(folder), 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
