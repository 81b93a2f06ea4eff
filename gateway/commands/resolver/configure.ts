/**
 * Preparations and queries of the definition resolver and of the OAuth return origins. The
 * preparation checks the URL and seals the token, so that the command contains no token in clear
 * text.
 */
import type { Refusal } from '../../../protocol/errors.ts'
import type { ResolverExtra } from '../../../protocol/resolver/rows.ts'
import { type PutDefinitionResolver, shownResolver } from '../../../protocol/resolver/schema.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import { type LocalQuery, localQuery, organizationOf } from '../../listing.ts'
import type { Prepare, Prepared } from '../../prepare.ts'
import { refuseUrl, withSealedUrl } from '../seal-url.ts'

function sealedToken({ world }: Edge, home: string, token: string | undefined): ResolverExtra {
  if (token === undefined) return {}
  if (token === '') return { sealed_token: null }
  return {
    sealed_token: {
      sealed: world.lock(Buffer.from(token), home),
      digest: Buffer.from(world.seal(`resolver token\n${home}\n${token}`)).toString('hex'),
    },
  }
}

async function configure(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const { endpoint_url: url, auth } = call.body as unknown as PutDefinitionResolver
  const refused = await refuseUrl(edge.world, 'endpoint_url', url)
  if (refused) return refused
  const prepared = withSealedUrl(edge, call, 'endpoint_url')
  // The input becomes part of the journal, so the token of the body is overwritten.
  const cleared = auth && { auth: { mode: 'bearer' as const } }
  return {
    input: {
      ...prepared.input,
      ...cleared,
      ...sealedToken(edge, scopeId(edge, call), auth?.token),
    },
  }
}

/** Preparations of the command rows, by row name. */
export const resolverPreparations: Readonly<Record<'resolver.put', Prepare>> = {
  'resolver.put': configure,
}
/** Handlers of the query rows, by row name. */
export const resolverQueries: Readonly<Record<string, LocalQuery>> = {
  'resolver.get': localQuery<'resolver.get'>((context) =>
    organizationOf(context, (known) => shownResolver(known, context.world.settings.brand)),
  ),
  'oauth_origins.get': localQuery<'oauth_origins.get'>((context) =>
    organizationOf(context, ({ oauth_origins = [] }) => ({ origins: [...oauth_origins] })),
  ),
}
