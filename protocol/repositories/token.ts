/** Token requests from a gateway to the code that calls repository hosts, and the results. */
import type { HostSecrets, RepositoryHost } from './rows.ts'

/** A request for a token for one repository. */
export interface TokenRequest {
  /** Id of the project. */
  readonly project: string
  readonly host: RepositoryHost
  /** The unsealed secrets of the host. */
  readonly secrets: HostSecrets
  /** A text that differs after every change to the host. */
  readonly revision: string
  /** A name for which `isRepositoryName` is true. */
  readonly full_name: string
  readonly access: 'read' | 'write'
}
/** `expires_at`: Unix milliseconds. */
export interface IssuedToken {
  readonly token: string
  readonly expires_at: number
}
/**
 * The reason why no token was issued. `message` contains no secrets. `denied`: the host issues no
 * token for this repository. `unavailable`: the host does not answer, or rejects the stored
 * secrets.
 */
export interface TokenFailure {
  readonly failed: 'denied' | 'unavailable'
  readonly message: string
}
