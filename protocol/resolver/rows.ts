/** The rows for the definition resolver and for the OAuth return origins, and their events. */
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'
import type { ChangedUrlParts } from '../masked-url.ts'
import type { Changes } from '../workflows/rows.ts'
import {
  checkOrigins,
  checkResolver,
  DefinitionResolver,
  OauthOrigins,
  PutDefinitionResolver,
  PutOauthOrigins,
  type ResolverSettings,
  type SealedToken,
} from './schema.ts'

const tag = 'definition resolver'
const permission = 'organization.admin'
const to = { kind: 'organization' } as const
const RESOLVER = '/organization/definition-resolver'
const ORIGINS = '/organization/oauth-return-origins'

export const resolver = {
  'resolver.get': query(`GET ${RESOLVER}`, {
    summary: 'The configuration of the definition resolver',
    tag,
    permission,
    answeredBy: 'gateway',
    reply: DefinitionResolver,
  }),
  'resolver.put': command(`PUT ${RESOLVER}`, {
    summary:
      'Replace the configuration of the definition resolver; if auth is absent, it is not changed',
    tag,
    permission,
    to,
    body: PutDefinitionResolver,
    check: checkResolver,
    reply: DefinitionResolver,
    cliExample: '--source client_resolver --endpoint-url https://definitions.example.org/resolve',
  }),
  'oauth_origins.get': query(`GET ${ORIGINS}`, {
    summary: 'Origins to which an OAuth flow that connects a provider may return',
    tag,
    permission,
    answeredBy: 'gateway',
    reply: OauthOrigins,
  }),
  'oauth_origins.put': command(`PUT ${ORIGINS}`, {
    summary:
      'Replace the origins to which an OAuth flow may return; an empty list disables the return ' +
      'to other sites',
    tag,
    permission,
    to,
    body: PutOauthOrigins,
    check: checkOrigins,
    reply: OauthOrigins,
  }),
} as const

/** The data that the gateway adds to `resolver.put`. The body then contains no plain-text token. */
export interface ResolverExtra {
  /** Null if the token is removed; absent if it is unchanged. */
  readonly sealed_token?: SealedToken | null
}
/** Events of the organization about the definition resolver and the OAuth return origins. */
export type ResolverEvent =
  | (Event &
      ChangedUrlParts & {
        readonly type: 'resolver.configured'
        readonly settings: ResolverSettings
        /** Null if the token was removed; absent if it is unchanged. */
        readonly token?: SealedToken | null
        readonly changes: Changes
      })
  | (Event & {
      readonly type: 'oauth_origins.replaced'
      readonly origins: readonly string[]
      readonly changes: Changes
    })
