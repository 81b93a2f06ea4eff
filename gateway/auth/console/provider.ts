/**
 * The port to the OpenID provider with which people sign in to the console. `nodes/` implements the
 * protocol. The gateway decides what a person may do.
 */

/** The secrets of one sign-in. The same values are needed at its start and at its callback. */
export interface SignInSecrets {
  readonly state: string
  readonly nonce: string
  /** The code verifier of PKCE (RFC 7636). */
  readonly verifier: string
}
/**
 * A person whom the provider has authenticated. `email` is present only when the provider has
 * verified it.
 */
export interface SignedInPerson {
  readonly issuer: string
  readonly subject: string
  readonly name: string
  readonly email?: string
  readonly groups: readonly string[]
}
/**
 * The reason why a sign-in failed. `denied`: the provider or the person refused. `invalid`: the
 * response of the provider is not valid for this sign-in. `unavailable`: the provider cannot be
 * reached.
 */
export type SignInFailure = 'denied' | 'invalid' | 'unavailable'
export interface SignInProvider {
  /** Display name of the provider. */
  readonly name: string
  /**
   * Domains that are allowed for a person's verified address. Empty means that any person may sign
   * in.
   */
  readonly domains: readonly string[]
  /**
   * The roles that groups grant, by group and then by project handle or id. The values are role
   * names or role ids. `*` as a group stands for every person, and as a project for every project.
   */
  readonly groups: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>
  /** Returns the URL of the provider to which the browser is redirected. */
  begin(redirect_uri: string, secrets: SignInSecrets): Promise<URL | SignInFailure>
  /**
   * Exchanges the code of a callback for the person.
   * @param callback the URL of the callback, with its query.
   */
  finish(callback: URL, secrets: SignInSecrets): Promise<SignedInPerson | SignInFailure>
}
