/**
 * People who sign in with OpenID Connect. The pair of issuer and subject identifies a person
 * permanently. Each project in which the person has a role has a user with this identity.
 */
import { type Static, Type } from 'typebox'

export const PersonIdentity = Type.Object({
  issuer: Type.String(),
  subject: Type.String(),
})
export type PersonIdentity = Static<typeof PersonIdentity>

/**
 * Id of the system principal that assigns and removes roles at sign-in. It removes only roles that
 * it assigned at an earlier sign-in and that the person's groups no longer grant.
 */
export const SIGN_IN_PRINCIPAL = 'oidc'

/** Internal commands of a project about people who sign in. */
export type IdentityCommands = {
  /**
   * Creates the user of a person, or updates the user's name, address and roles. An existing user
   * with this address and without an identity becomes the user of the person. `email` must be
   * verified by the provider. `roles` are names or ids. If the project has none of the roles, no
   * user is created.
   */
  'person.sign_in': {
    input: {
      readonly identity: PersonIdentity
      readonly name: string
      readonly email?: string
      readonly roles: readonly string[]
    }
    reply: {
      /** `roles` is the number of roles that the user has after the sign-in. */
      readonly user?: { readonly id: string; readonly active: boolean; readonly roles: number }
      readonly changed: boolean
      /** Roles of the input that the project does not have. */
      readonly unknown: readonly string[]
    }
  }
}
