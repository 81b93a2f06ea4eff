/**
 * Preparations and queries of repository hosts. A preparation checks the URL and the key, and seals
 * keys and tokens, so that the command contains no secret in clear text.
 * `queries/git-credentials.ts` unseals them.
 */
import { createPrivateKey } from 'node:crypto'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import {
  type HostMaterial,
  type HostSecrets,
  type PutRepositoryHost,
  splitHost,
} from '../../../protocol/repositories/rows.ts'
import type { Call, Edge } from '../../call.ts'
import { type LocalQuery, localQuery } from '../../listing.ts'
import type { World } from '../../ports.ts'
import type { Prepare, Prepared } from '../../prepare.ts'

/** Minimum size of the RSA key of a GitHub App, in bits. */
const KEY_BITS = 2048

/** Returns the fault of a private key, as text that follows the name of the field. */
function keyFault(pem: string): string | undefined {
  try {
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = createPrivateKey(pem)
    return type === 'rsa' && (details?.modulusLength ?? 0) >= KEY_BITS
      ? undefined
      : `must be an RSA key of at least ${KEY_BITS} bits`
  } catch {
    // The parser's error is not shown, because it may quote the key.
    return 'must be a private key in PEM without a passphrase'
  }
}

async function sealHost(
  { world }: Edge,
  { project, slots, body }: Call,
): Promise<Prepared | Refusal> {
  if (!project) return {}
  const put = body as unknown as PutRepositoryHost
  const fault = put.private_key === undefined ? undefined : keyFault(put.private_key)
  if (fault !== undefined) return refuseFields({ field: 'private_key', message: fault })
  const { host, secrets } = splitHost(put)
  // A host with stored tokens is called only by workers of environments, so its URL is checked
  // differently.
  const message = await (host.kind === 'token'
    ? world.unreachableRepository?.(host.url)
    : world.unreachable?.(host.url))
  if (message !== undefined) return refuseFields({ field: 'url', message, actual: host.url })
  const text = JSON.stringify(secrets)
  const material: HostMaterial = {
    sealed: world.lock(Buffer.from(text), project.id),
    digest: Buffer.from(
      world.seal(`repository host\n${project.id}\n${slots['host_name']}\n${text}`),
    ).toString('hex'),
  }
  // The input becomes part of the journal, so each secret of the body is overwritten.
  const cleared = Object.fromEntries(Object.keys(secrets).map((name) => [name, '']))
  return { input: { ...cleared, host, material } }
}

/**
 * Returns the secrets of a host; undefined when this installation did not seal them for the
 * project.
 */
export function unsealHost(
  world: Pick<World, 'unlock'>,
  project: string,
  { sealed }: HostMaterial,
): HostSecrets | undefined {
  const bytes = world.unlock(sealed, project)
  return bytes && (JSON.parse(Buffer.from(bytes).toString('utf8')) as HostSecrets)
}

/** Preparations of the command rows, by row name. */
export const hostPreparations: Readonly<Record<'repository_host.put', Prepare>> = {
  'repository_host.put': sealHost,
}
/** Queries of repository hosts, by row name. */
export const hostQueries: Readonly<Record<string, LocalQuery>> = {
  'repository_host.list': localQuery<'repository_host.list'>(async ({ world, project = '' }) => {
    const items = await world.ask({ project, kind: 'project', id: project }, 'repository_hosts', {})
    return isRefusal(items) ? items : { items: [...items] }
  }),
  'repository_host.get': localQuery<'repository_host.get'>(
    async ({ world, project = '' }, { host_name: name }) => {
      const to = { project, kind: 'project', id: project } as const
      const kept = await world.ask(to, 'repository_host', { name })
      return isRefusal(kept) ? kept : (kept?.host ?? refuse('not_found'))
    },
  ),
}
