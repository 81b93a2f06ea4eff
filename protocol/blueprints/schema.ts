/**
 * Blueprints: descriptions of the resources of a project that are applied as a whole. This file
 * contains the schemas of requests and responses. The schemas of resources are in `resources.ts`.
 *
 * Published clients decode these responses strictly. The responses therefore contain members and
 * resource types beyond the published contract only when `include` lists them, or when the request
 * contains a field that such clients do not send.
 */
import { type Static, Type } from 'typebox'
import { additions } from '../additions.ts'
import { Closed } from '../common.ts'
import { resourceArrays, resourceTypes } from './resources.ts'

/** Limits of blueprints. `name` is in characters, `body` in bytes. */
export const blueprintLimits = { name: 128, resources: 2000, body: 16_777_216 } as const

const Name = Type.String({
  maxLength: blueprintLimits.name,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  description: 'An empty text is the same as an absent member',
})
export const BlueprintKey = Type.String({
  minLength: 1,
  maxLength: blueprintLimits.name,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
})
export const Namespace = Name

/**
 * The additions that `include` can list:
 * - `plan`: the differences per field, and `plan_id`.
 * - `drift`: fields that were changed by other means since the last apply.
 * - `orphans`: bindings of the blueprint whose resources the request does not contain.
 * - `further_types`: resources of types beyond the published contract.
 *
 * The handlers of the rows evaluate `include` themselves, because most additions are not members of
 * the response.
 */
export const blueprintAdditions = additions({
  plan: {},
  drift: {},
  orphans: {},
  further_types: {},
})
export const Include = blueprintAdditions.include
export type Included = 'plan' | 'drift' | 'orphans' | 'further_types'

const ResourceType = Type.Enum([...resourceTypes])

/** A difference of one field. Secret parts of the values are masked. */
export const FieldDifference = Type.Object({
  field: Type.String(),
  from: Type.Optional(Type.Unknown()),
  to: Type.Optional(Type.Unknown()),
})
export type FieldDifference = Static<typeof FieldDifference>

/** The association of a resource with a blueprint. */
export const Binding = Type.Object({
  resource_type: ResourceType,
  key: Type.String(),
  resource_id: Type.String(),
  namespace: Type.Optional(Type.String()),
  blueprint_key: Type.Optional(Type.String()),
  blueprint_version: Type.Optional(Type.String()),
  protected: Type.Boolean(),
  delete_on_destroy: Type.Boolean({
    description:
      'Whether the blueprint created the resource; deleting the blueprint then deletes it',
  }),
})
export type Binding = Static<typeof Binding>

/**
 * The outcome for one resource. `deleted` and `released` occur only in responses to requests with
 * `prune`. A released resource remains, without its binding.
 */
export const Change = Type.Object({
  resource_type: ResourceType,
  key: Type.String(),
  action: Type.Enum(['created', 'updated', 'adopted', 'unchanged', 'deleted', 'released']),
  resource_id: Type.Optional(Type.String()),
  fields: Type.Optional(
    Type.Array(FieldDifference, { description: 'Differences; only with include=plan' }),
  ),
  drift: Type.Optional(
    Type.Array(FieldDifference, {
      description:
        'Fields that were changed by other means since the last apply, with their present ' +
        'values; only with include=drift',
    }),
  ),
  omitted: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Fields that the last apply set and the request omits, if there are any. They keep their ' +
        'values; only with include=plan',
    }),
  ),
})
export type Change = Static<typeof Change>

export const ApplyRequest = Closed({
  namespace: Type.Optional(Name),
  blueprint_key: Type.Optional(Name),
  blueprint_version: Type.Optional(
    Type.String({
      maxLength: blueprintLimits.name,
      description: "Version of the blueprint's source; stored unchanged and not interpreted",
    }),
  ),
  mode: Type.Optional(Type.Enum(['preview', 'apply'])),
  protect_resources: Type.Optional(
    Type.Boolean({
      description:
        'Protection of all bindings of this blueprint; if absent, the protection is not changed',
    }),
  ),
  resources: Closed(resourceArrays),
  plan_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'plan_id of a preview; the apply is refused if the plan has changed since then',
    }),
  ),
  prune: Type.Optional(
    Type.Boolean({
      description:
        'Whether to delete the resources of this blueprint that the request does not name; an ' +
        'apply also requires plan_id',
    }),
  ),
})
export type ApplyRequest = Static<typeof ApplyRequest>

export const ApplyResult = Type.Object({
  status: Type.Enum(['applied', 'previewed']),
  namespace: Type.Optional(Type.String()),
  blueprint_key: Type.Optional(Type.String()),
  blueprint_version: Type.Optional(Type.String()),
  changes: Type.Array(Change),
  bindings: Type.Array(Binding),
  plan_id: Type.Optional(Type.String({ description: 'Id of the plan; only with include=plan' })),
  orphans: Type.Optional(
    Type.Array(Binding, {
      description: 'Bindings whose resources the request does not name; only with include=orphans',
    }),
  ),
})
export type ApplyResult = Static<typeof ApplyResult>

export const BindingList = Type.Object({ items: Type.Array(Binding) })
export const DeleteResult = Type.Object({
  status: Type.Literal('deleted'),
  namespace: Type.Optional(Type.String()),
  blueprint_key: Type.String(),
  deleted: Type.Array(Binding),
  retained: Type.Array(Binding),
})
export type DeleteResult = Static<typeof DeleteResult>

/** The state of one bound resource, compared with the last apply. */
export const DriftItem = Type.Object({
  resource_type: ResourceType,
  key: Type.String(),
  resource_id: Type.String(),
  state: Type.Enum(['unchanged', 'changed', 'deleted']),
  fields: Type.Array(FieldDifference, {
    description: 'Fields that differ from the last apply; their present values are in `to`',
  }),
})
export type DriftItem = Static<typeof DriftItem>
export const DriftList = Type.Object({ items: Type.Array(DriftItem) })

/** The resources of a project or of one blueprint, in a form that can be applied. */
export const Export = Type.Object({
  namespace: Type.Optional(Type.String()),
  blueprint_key: Type.Optional(Type.String()),
  blueprint_version: Type.Optional(Type.String()),
  resources: Type.Object(resourceArrays),
})
export type Export = Static<typeof Export>
