/**
 * Bindings as they are stored, and the claims that the service adds to commands that change
 * resources on behalf of a blueprint.
 *
 * Invariants:
 * B1. The actor that owns a resource stores its binding. Resource and binding change in one commit,
 *     and the owner refuses ordinary changes to a protected resource.
 * B2. A resource is bound to at most one blueprint.
 */
import type { Event } from '../entry.ts'
import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import type { ResourceTypeName } from './resources.ts'
import type { Binding } from './schema.ts'

/**
 * The identity of a blueprint within its project: both members together. Either of them can be
 * absent.
 */
export interface Identity {
  readonly namespace?: string
  readonly blueprint_key?: string
}
/** Whether two identities are equal. An empty text counts as absent. */
export const isSameIdentity = (a: Identity, b: Identity): boolean =>
  (a.namespace ?? '') === (b.namespace ?? '') && (a.blueprint_key ?? '') === (b.blueprint_key ?? '')
/** Returns the identity without empty texts. */
export const identityOf = ({ namespace, blueprint_key }: Identity): Identity => ({
  ...(namespace && { namespace }),
  ...(blueprint_key && { blueprint_key }),
})

/** A binding with the members that only the service uses. */
export interface InternalBinding extends Binding {
  /** Hashes of the values that the last apply set, by field of the resource input. */
  readonly applied?: Readonly<Record<string, string>>
  /** Values of input fields that the record cannot store, by field. */
  readonly kept?: Readonly<Record<string, unknown>>
}
/** Returns the binding as clients see it. */
export const shownBinding = ({ applied: _, kept: __, ...binding }: InternalBinding): Binding =>
  binding

/** The data that the service adds to a command that it sends on behalf of a blueprint. */
export interface BlueprintClaim {
  readonly blueprint?: {
    /**
     * The binding after the command. A command that creates the resource uses the `resource_id` of
     * the binding as the id of the resource.
     */
    readonly binding: InternalBinding
    /** `updated_at` of the record on which the plan is based. */
    readonly expected_updated_at?: string
  }
}

export type BoundEvent =
  | (Event & { readonly type: 'blueprint.bound'; readonly binding: InternalBinding })
  | (Event & {
      readonly type: 'blueprint.unbound'
      readonly resource_type: ResourceTypeName
      readonly resource_id: string
    })
/** Commands to the owner of a resource that change only its binding. */
export type BindingCommands = {
  'blueprint.bind': { input: Required<BlueprintClaim>; reply: undefined }
  'blueprint.unbind': {
    input: Identity & {
      readonly resource_type: ResourceTypeName
      readonly resource_id: string
    }
    reply: undefined
  }
}

const detailsOf = ({ resource_type, key, resource_id, namespace, blueprint_key }: Binding) => ({
  resource_type,
  key,
  resource_id,
  ...(namespace !== undefined && { namespace }),
  ...(blueprint_key !== undefined && { blueprint_key }),
})
/**
 * Refuses a change to a protected resource, unless the blueprint to which the resource is bound
 * requests it.
 */
export const refuseProtected = (
  existing: InternalBinding | undefined,
  requester: Identity | undefined,
): Refusal | undefined =>
  existing?.protected && !(requester && isSameIdentity(existing, requester))
    ? refuse('blueprint_resource_protected', detailsOf(existing))
    : undefined
/** Refuses a command that the existing binding of its resource does not allow. */
export function refuseByBinding(
  existing: InternalBinding | undefined,
  claim: BlueprintClaim['blueprint'],
): Refusal | undefined {
  if (!existing) return undefined
  if (!claim) return refuseProtected(existing, undefined)
  return isSameIdentity(existing, claim.binding)
    ? undefined
    : refuse('blueprint_owned_elsewhere', detailsOf(existing))
}
