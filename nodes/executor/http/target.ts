/** Looks up the action that an HTTP job calls: its URL, its format, and its active secret. */
import type { World } from '../../../gateway/ports.ts'
import type { InvocationFacts } from '../../../protocol/actions/invocation.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { UrlParts } from '../../../protocol/masked-url.ts'
import { secretRef } from '../../../protocol/naming.ts'
import type { Outcome } from '../handler.ts'

export interface Target extends UrlParts {
  readonly id: string
  readonly name: string
  readonly scope: 'project' | 'organization'
  readonly format: InvocationFacts['invocation_format']
  readonly url: string
  readonly secret: {
    readonly sealed: string
    readonly version: number
    readonly ref: string
    /** Id of the project or organization that owns the secret and the URL. */
    readonly home: string
  }
}
type TargetWorld = Pick<World, 'ask' | 'organization' | 'settings'>

/** Returns the outcome of a job whose action cannot be called, however often it is attempted. */
export const permanentFailure = (error_type: string, error_message: string): Outcome => ({
  status: 'failed',
  error_type,
  error_message,
  final: true,
})

/**
 * Looks up the action with the given name. Returns undefined when there is no such action or when
 * workers perform it. Returns a failed outcome when the action cannot be called, and a refusal when
 * the lookup is refused.
 */
export async function findTarget(
  world: TargetWorld,
  project: string,
  name: string,
): Promise<Target | undefined | Outcome | Refusal> {
  const own = await world.ask({ project, kind: 'project', id: project }, 'action', { name })
  if (isRefusal(own)) return own
  if (!own) return sharedTarget(world, name)
  const { action, secret, url_parts } = own
  if (action.endpoint_kind !== 'http' || !secret || action.endpoint_url === undefined)
    return undefined
  return {
    id: action.id,
    name,
    scope: 'project',
    format: action.invocation_format,
    url: action.endpoint_url,
    ...(url_parts && { url_parts }),
    secret: { ...secret, ref: secretRef(world.settings.brand, 'action', name), home: project },
  }
}

/** Looks up an action of the organization. */
async function sharedTarget(
  world: TargetWorld,
  name: string,
): Promise<Target | undefined | Outcome | Refusal> {
  const home = world.organization()
  const address = { project: home, kind: 'organization', id: home } as const
  const shared = await world.ask(address, 'action', { name })
  if (isRefusal(shared)) return shared
  if (!shared) return undefined
  const { action, secrets, url_parts } = shared
  if (!action.enabled) return permanentFailure('action_disabled', `The action ${name} is disabled.`)
  const version = action.active_signing_version
  const secret = version === undefined ? undefined : secrets[version]
  if (version === undefined || !secret)
    return permanentFailure(
      'action_not_signable',
      `The action ${name} has no active secret; rotate it and activate the new version.`,
    )
  return {
    id: action.id,
    name,
    scope: 'organization',
    format: 'signed_context_v1',
    url: action.endpoint_url,
    ...(url_parts && { url_parts }),
    secret: { ...secret, version, ref: action.secret_ref, home },
  }
}
