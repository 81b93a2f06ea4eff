/** Project states and apply requests for the tests of plans. */
import { createHash } from 'node:crypto'
import type { KnownResource } from '../../../protocol/blueprints/compare.ts'
import { type Plan, type Present, planOf } from '../../../protocol/blueprints/plan.ts'
import type { ResourceTypeName } from '../../../protocol/blueprints/resources.ts'
import type { ApplyRequest } from '../../../protocol/blueprints/schema.ts'
import type { InternalBinding } from '../../../protocol/blueprints/stored.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'

export const hash = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 16)
export const desk = { namespace: 'ops', blueprint_key: 'desk' } as const
type Fields = Readonly<Record<string, unknown>>

/** Returns a resource without a binding. */
export const free = (
  type: ResourceTypeName,
  id: string,
  record: Fields,
  updated_at = '2026-01-01T00:00:00.000Z',
): KnownResource => ({ type, id, updated_at, record: { id, updated_at, ...record } })
/** Returns the resource with a binding to a blueprint, by default to `desk`. */
export const bound = (
  known: KnownResource,
  key: string,
  more: Partial<InternalBinding> = {},
): KnownResource => ({
  ...known,
  binding: {
    resource_type: known.type,
    key,
    resource_id: known.id,
    ...desk,
    protected: false,
    delete_on_destroy: true,
    applied: {},
    ...more,
  },
})
export const project = (...resources: KnownResource[]): Present => ({
  bindings: resources.flatMap(({ binding }) => (binding ? [binding] : [])),
  resources,
  exists: (type, id) => resources.some((one) => one.type === type && one.id === id),
  hash,
})
export const request = (resources: object, more: Partial<ApplyRequest> = {}): ApplyRequest => ({
  ...desk,
  resources: resources as ApplyRequest['resources'],
  ...more,
})
/**
 * Returns the plan of a request.
 * @throws {Error} if the plan is refused.
 */
export function planned(one: ApplyRequest, present: Present = project()): Plan {
  const plan = planOf(one, present)
  if (isRefusal(plan)) throw new Error(`${plan.refused} ${JSON.stringify(plan.details)}`)
  return plan
}
/**
 * Returns the refusal of a request.
 * @throws {Error} if the plan is not refused.
 */
export function refusal(one: ApplyRequest, present: Present = project()): Refusal {
  const plan = planOf(one, present)
  if (!isRefusal(plan)) throw new Error('the plan is not refused')
  return plan
}
/** Returns the outcomes as `type/key action id`. */
export const outcomes = ({ changes, pruned }: Plan): string[] =>
  [...changes, ...pruned].map(({ resource_type, key, action, resource_id = '' }) =>
    `${resource_type}/${key} ${action} ${resource_id}`.trimEnd(),
  )
export const stepsOf = ({ changes }: Plan) =>
  changes.flatMap(({ steps }) => steps.map(({ row, body }) => ({ row, body })))
