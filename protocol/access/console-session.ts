/** Schemas of the request to sign in to the console and of the reply about the session. */
import { type Static, Type } from 'typebox'
import { Closed } from '../common.ts'
import type { FieldError } from '../errors.ts'
import { ConsoleSession } from './console-rows.ts'

export const SignIn = Closed({
  credential: Type.Optional(
    Type.String({ minLength: 1, maxLength: 600, description: 'An API key or a personal token' }),
  ),
  code: Type.Optional(
    Type.String({ minLength: 1, maxLength: 128, description: 'The code of a sign-in link' }),
  ),
})
/** Returns a fault unless exactly one way of signing in is given. */
export const checkSignIn = ({ credential, code }: Static<typeof SignIn>): FieldError[] =>
  (credential === undefined) === (code === undefined)
    ? [{ field: 'credential', message: 'give exactly one of credential and code' }]
    : []

const Somebody = Type.Object({
  id: Type.String(),
  kind: Type.Enum(['service', 'agent', 'system', 'user']),
  name: Type.String(),
})
const Permissions = Type.Array(Type.String(), {
  description:
    'Permission ids in the form that roles use; may contain wildcards, such as ' +
    'actions.execute.crm.*',
})
/**
 * Whether the caller is signed in, the available ways to sign in, and the rights of the session.
 * Without a session, only `signed_in` and `ways` are present.
 */
export const ConsoleIdentity = Type.Object({
  signed_in: Type.Boolean(),
  ways: Type.Object({
    available: Type.Boolean({
      description:
        'Whether a console session can be created at this address: over https, or over http on a ' +
        'loopback address',
    }),
    credential: Type.Boolean({
      description: 'Whether an API key, a personal token or a sign-in link can be used',
    }),
    oidc: Type.Optional(
      Type.Object({
        name: Type.String({ description: 'Name of the identity provider' }),
        start_path: Type.String({
          description:
            'Path that starts the sign-in; the parameter `return` is the console path to open ' +
            'afterwards',
        }),
      }),
    ),
  }),
  display_name: Type.Optional(Type.String()),
  session: Type.Optional(ConsoleSession),
  organization: Type.Optional(
    Type.Object(
      { principal: Somebody, role: Type.String(), permissions: Permissions },
      { description: 'Rights of the organization key; absent if the session has none' },
    ),
  ),
  projects: Type.Optional(
    Type.Array(
      Type.Object({
        id: Type.String(),
        handle: Type.String(),
        name: Type.String(),
        principal: Somebody,
        permissions: Permissions,
      }),
      { description: 'Projects that the session can access, in the order of their names' },
    ),
  ),
  more_projects: Type.Optional(
    Type.Boolean({ description: 'Whether the session can access more projects than are listed' }),
  ),
})
export type ConsoleIdentity = Static<typeof ConsoleIdentity>
