/**
 * Command handlers of actors whose resources can belong to a blueprint. `managed` wraps the handler
 * of an ordinary command. It enforces the protection of the resource. If the command comes from a
 * blueprint, its binding is stored in the same commit (protocol/blueprints/stored.ts).
 */
import { type KnownResource, withoutSecretsOf } from '../../protocol/blueprints/compare.ts'
import type { ResourceTypeName } from '../../protocol/blueprints/resources.ts'
import {
  type BindingCommands,
  type BlueprintClaim,
  type BoundEvent,
  type InternalBinding,
  isSameIdentity,
  refuseByBinding,
} from '../../protocol/blueprints/stored.ts'
import type { Event } from '../../protocol/entry.ts'
import { isRefusal, refuse } from '../../protocol/errors.ts'
import type { Prefix } from '../../protocol/ids.ts'
import type { Cause, Decided, Decision } from '../actor.ts'

/** A record with its id and, as its version, the time of its last change. */
export interface Identified {
  readonly id: string
  readonly updated_at: string
}
type On<T extends BoundEvent['type']> = Extract<BoundEvent, { readonly type: T }>

/** How an actor finds its resources of one type, and their bindings. */
export interface ManagedResource<S> {
  readonly type: ResourceTypeName
  /** Prefix of the ids that the actor generates for new resources of this type. */
  readonly prefix?: Prefix
  /** Returns the resource that a command addresses, or undefined if there is no such resource. */
  readonly find: (state: S, input: Readonly<Record<string, unknown>>) => Identified | undefined
  readonly binding: (state: S, id: string) => InternalBinding | undefined
}
type Arm<S, I, E, R> = (state: S, input: I, cause: Cause) => Decision<E, R>

const unbound = ({ resource_type, resource_id }: InternalBinding): BoundEvent => ({
  type: 'blueprint.unbound',
  resource_type,
  resource_id,
})
const isSame = (a: InternalBinding | undefined, b: InternalBinding): boolean =>
  JSON.stringify(a) === JSON.stringify(b)

/** Adds events to a decision, and drops its `next`, which does not reflect them. */
function withEvents<E, R>(
  { next: _, ...decided }: Decided<E, R>,
  more: readonly BoundEvent[],
): Decided<E | BoundEvent, R> {
  return { ...decided, events: [...decided.events, ...more] }
}

/** Returns a cause that mints the given id for this prefix. */
const minting = (cause: Cause, prefix: Prefix, id: string): Cause => ({
  ...cause,
  mint: (wanted: Prefix) => (wanted === prefix ? id : cause.mint(wanted)),
  secret: () => cause.secret(),
})

/**
 * Wraps the handler of a command that creates, changes or deletes a resource.
 * @param effect what the command does with the resource.
 */
export const managed =
  <S, I extends object, E extends Event, R>(
    resource: ManagedResource<S>,
    effect: 'create' | 'change' | 'delete',
    arm: Arm<S, I, E, R>,
  ): Arm<S, I & BlueprintClaim, E | BoundEvent, R> =>
  (state, input, cause) => {
    const { blueprint: claim } = input
    if (effect === 'create') {
      if (!claim) return arm(state, input, cause)
      // If no id was reserved for the resource, `resource_id` is empty. The resource then has the
      // id of its actor.
      const resource_id = claim.binding.resource_id || cause.self.id
      const binding = { ...claim.binding, resource_id }
      if (resource.binding(state, resource_id)) return refuse('blueprint_plan_outdated')
      const decided = arm(
        state,
        input,
        resource.prefix === undefined ? cause : minting(cause, resource.prefix, resource_id),
      )
      return isRefusal(decided)
        ? decided
        : withEvents(decided, [{ type: 'blueprint.bound', binding }])
    }
    const found = resource.find(state, input as Readonly<Record<string, unknown>>)
    const existing = found && resource.binding(state, found.id)
    const refused = refuseByBinding(existing, claim)
    if (refused) return refused
    if (
      claim?.expected_updated_at !== undefined &&
      found &&
      found.updated_at !== claim.expected_updated_at
    )
      return refuse('blueprint_plan_outdated')
    const decided = arm(state, input, cause)
    if (isRefusal(decided)) return decided
    const after =
      claim?.binding ??
      (existing && withoutSecretsOf(existing, input as Readonly<Record<string, unknown>>))
    const more: BoundEvent[] =
      effect === 'delete'
        ? existing
          ? [unbound(existing)]
          : []
        : after && !isSame(existing, after)
          ? [{ type: 'blueprint.bound', binding: after }]
          : []
    return more.length === 0 ? decided : withEvents(decided, more)
  }

/** Returns a record in the form that plans use, or null if there is no record. */
export const asResource = (
  type: ResourceTypeName,
  record: Identified | undefined,
  binding: InternalBinding | undefined,
  more: Pick<KnownResource, 'is_empty'> = {},
): KnownResource | null =>
  record
    ? {
        type,
        id: record.id,
        updated_at: record.updated_at,
        record: { ...record },
        ...(binding && { binding }),
        ...more,
      }
    : null

/**
 * Returns the handlers of the commands that change only a binding.
 * @param exists whether the actor has the resource.
 */
export const bindingArms = <S>(
  exists: (state: S, type: ResourceTypeName, id: string) => boolean,
  bindingOf: (state: S, id: string) => InternalBinding | undefined,
) => ({
  'blueprint.bind': (
    state: S,
    { blueprint: claim }: BindingCommands['blueprint.bind']['input'],
  ): Decision<BoundEvent, undefined> => {
    const { binding } = claim
    if (!exists(state, binding.resource_type, binding.resource_id)) return refuse('not_found')
    const existing = bindingOf(state, binding.resource_id)
    return (
      refuseByBinding(existing, claim) ?? {
        events: isSame(existing, binding) ? [] : [{ type: 'blueprint.bound', binding }],
        reply: undefined,
      }
    )
  },
  'blueprint.unbind': (
    state: S,
    input: BindingCommands['blueprint.unbind']['input'],
  ): Decision<BoundEvent, undefined> => {
    const existing = bindingOf(state, input.resource_id)
    return {
      events: existing && isSameIdentity(existing, input) ? [unbound(existing)] : [],
      reply: undefined,
    }
  },
})

/**
 * Returns the parts of an actor that is a single resource: its `ManagedResource`, the command
 * handlers and reducers of its binding, and the answer to the query `resource`.
 * @param recordOf returns the record of the resource, or undefined if the resource does not exist.
 */
export const singleResource = <S extends { readonly binding?: InternalBinding } | null>(
  type: ResourceTypeName,
  recordOf: (state: S) => Identified | undefined,
) => {
  const binding = (state: S): InternalBinding | undefined => state?.binding
  return {
    managed: { type, find: recordOf, binding } satisfies ManagedResource<S>,
    arms: bindingArms<S>((state) => recordOf(state) !== undefined, binding),
    evolve: {
      'blueprint.bound': (state: S, event: On<'blueprint.bound'>): S =>
        state && { ...state, binding: event.binding },
      'blueprint.unbound': (state: S): S => {
        if (!state) return state
        const { binding: _, ...rest } = state
        return rest as S
      },
    },
    asked: (state: S, more?: Pick<KnownResource, 'is_empty'>): KnownResource | null =>
      asResource(type, recordOf(state), binding(state), more),
  }
}
