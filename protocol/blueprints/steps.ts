/** Computes the commands that bring a resource to its desired state, and its new binding. */
import type { RowName } from '../api.ts'
import { appliedHashes, type Hash, type KnownResource } from './compare.ts'
import type { ResourceInput, ResourceTypeName } from './resources.ts'
import type { ApplyRequest } from './schema.ts'
import type { Identity, InternalBinding } from './stored.ts'
import { memberOf, resourceFacts, type TypeFacts } from './types.ts'

/** A command of a plan. Bodies can contain symbolic references (`references.ts`). */
export interface Step {
  /** A row of the API, or a command that changes only the binding. */
  readonly row: RowName | 'blueprint.bind' | 'blueprint.unbind'
  readonly body: Readonly<Record<string, unknown>>
}
/**
 * Returns the body of a request that sets the given fields. It omits fields that are stored in the
 * binding or set by a separate row.
 */
const bodyOf = (
  facts: TypeFacts,
  wanted: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Record<string, unknown> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const { kept, assigned, form, sendsForm } = facts.fields[name] ?? {}
      const value = wanted[name]
      return kept || assigned
        ? []
        : [[memberOf(facts, name), sendsForm && form ? form(value) : value]]
    }),
  )
const assignmentsOf = (
  facts: TypeFacts,
  wanted: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Step[] =>
  names.flatMap((name): Step[] => {
    const { assigned } = facts.fields[name] ?? {}
    return assigned ? [{ row: assigned.row, body: { [assigned.body]: wanted[name] } }] : []
  })
/**
 * Returns the current values of the record members that correspond to input fields. A request to a
 * row that replaces the whole record contains them, so that unchanged fields keep their values.
 */
const replaced = (facts: TypeFacts, known: KnownResource): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(facts.fields).flatMap(([name, { kept, assigned }]) => {
      const member = memberOf(facts, name)
      const value = known.record[member]
      return kept || assigned || value === undefined ? [] : [[member, value]]
    }),
  )

/**
 * Returns the commands that bring a resource to its desired state.
 * @param changed names of the fields that differ.
 * @param rebinds whether the binding changes.
 */
export function stepsOf(
  type: ResourceTypeName,
  wanted: Readonly<Record<string, unknown>>,
  known: KnownResource | undefined,
  changed: readonly string[],
  rebinds: boolean,
): Step[] {
  const facts = resourceFacts[type]
  if (!facts.rows) return []
  if (!known)
    return [
      {
        row: facts.rows.create,
        body: { ...facts.defaults, ...bodyOf(facts, wanted, Object.keys(wanted)) },
      },
      ...assignmentsOf(
        facts,
        wanted,
        Object.keys(wanted).filter((name) => (wanted[name] as unknown[] | undefined)?.length !== 0),
      ),
    ]
  const body = bodyOf(facts, wanted, changed)
  const changes: Step[] =
    Object.keys(body).length > 0
      ? [
          {
            row: facts.rows.change,
            body: facts.replaces ? { ...replaced(facts, known), ...body } : body,
          },
        ]
      : []
  const all = [...changes, ...assignmentsOf(facts, wanted, changed)]
  // The first command also stores the binding, so a separate command is needed only if there is no
  // other.
  return all.length === 0 && rebinds ? [{ row: 'blueprint.bind', body: {} }] : all
}

/** The parts of a request on which the bindings of all its resources depend. */
export interface BindingContext {
  readonly request: ApplyRequest
  readonly identity: Identity
  readonly hash: Hash
}
/** Returns the binding after the change. */
export function bindingAfter(
  { request, identity, hash }: BindingContext,
  { type, input }: { readonly type: ResourceTypeName; readonly input: ResourceInput },
  wanted: Readonly<Record<string, unknown>>,
  known: KnownResource | undefined,
): Omit<InternalBinding, 'resource_id'> {
  const existing = known?.binding
  const { fields } = resourceFacts[type]
  const kept = {
    ...existing?.kept,
    ...Object.fromEntries(Object.entries(wanted).filter(([name]) => fields[name]?.kept)),
  }
  return {
    resource_type: type,
    key: input.key,
    ...identity,
    ...(request.blueprint_version && { blueprint_version: request.blueprint_version }),
    protected: request.protect_resources ?? existing?.protected ?? false,
    delete_on_destroy: existing ? existing.delete_on_destroy : known === undefined,
    applied: appliedHashes(type, wanted, hash),
    ...(Object.keys(kept).length > 0 && { kept }),
  }
}
