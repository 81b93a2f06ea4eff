/**
 * Executes the commands of a plan. Like a call of its API row, each command needs the permission of
 * the row, is prepared, and is decided by an actor. It also contains the binding of its resource.
 *
 * Invariant: the commands of one resource are executed in order, and tiers are executed one after
 * another. After a refusal, no more commands are started. Completed changes remain.
 */
import { withReferences } from '../../protocol/blueprints/compare.ts'
import type { PlannedChange } from '../../protocol/blueprints/plan.ts'
import { placeOf, resolveReferences } from '../../protocol/blueprints/references.ts'
import type { Step } from '../../protocol/blueprints/steps.ts'
import {
  type BlueprintClaim,
  type InternalBinding,
  identityOf,
} from '../../protocol/blueprints/stored.ts'
import { memberOf, referringMembers, resourceFacts } from '../../protocol/blueprints/types.ts'
import type { Row } from '../../protocol/contract.ts'
import type { Origin } from '../../protocol/entry.ts'
import {
  type FieldError,
  isRefusal,
  type Refusal,
  refuse,
  refuseFields,
} from '../../protocol/errors.ts'
import { authorizeRow } from '../auth/authorize.ts'
import { type Call, type Edge, rows, scopeId } from '../call.ts'
import { concurrently } from '../timing.ts'
import type { Hold } from './hold.ts'
import { hashIn } from './present.ts'

/** Maximum number of resources that are changed at the same time. */
const MAX_CONCURRENT = 16

const rowOf = (name: string): Row => {
  const row = rows[name]
  if (!row) throw new Error(`${name} is not a row`)
  return row
}

/** Returns the refusal for the first row of the plan that the caller may not call. */
export function refuseRows(
  edge: Pick<Edge, 'world'>,
  { caller }: Pick<Call, 'caller'>,
  changes: readonly PlannedChange[],
): Refusal | undefined {
  // A binding controls who may change or delete its resource, so changing the binding requires the
  // permission to change the resource.
  const names = new Set(
    changes.flatMap(({ resource_type, steps }) =>
      steps.flatMap(({ row }) =>
        row === 'blueprint.bind' || row === 'blueprint.unbind'
          ? (resourceFacts[resource_type].rows?.change ?? [])
          : row,
      ),
    ),
  )
  for (const name of names) {
    const refused = authorizeRow(edge.world.settings.brand, rowOf(name).shape, caller, {})
    if (refused) return refused
  }
  return undefined
}

/**
 * Adds the resource to a refusal, and converts its field paths to paths in the blueprint request,
 * also in the message.
 */
export function locateRefusal(
  { resource_type: type, key, field }: Pick<PlannedChange, 'resource_type' | 'key' | 'field'>,
  refusal: Refusal,
): Refusal {
  const facts = resourceFacts[type]
  const names = new Map(
    Object.keys(facts.fields).map((name) => [memberOf(facts, name), name] as const),
  )
  const faults = refusal.details?.['fields'] as readonly FieldError[] | undefined
  const fields = faults?.map((fault) => {
    const [, head = '', rest = ''] = /^([^.[]*)(.*)$/s.exec(fault.field) ?? []
    return { ...fault, field: `${field}.${names.get(head) ?? head}${rest}` }
  })
  const [first] = faults ?? []
  const [shown] = fields ?? []
  const isOfField = first && shown && refusal.message === refuseFields(first).message
  return {
    ...refusal,
    ...(isOfField && { message: refuseFields(shown).message ?? '' }),
    details: { ...refusal.details, resource_type: type, key, ...(fields && { fields }) },
  }
}

interface Execution {
  readonly edge: Edge
  readonly call: Call
  readonly origin: Origin
  /**
   * Ids of the blueprint's resources by resource type and key (`placeOf`), including resources that
   * are not created yet.
   */
  readonly ids: Record<string, string>
  /** The hold of the blueprint. No further command is sent once the hold may be lost. */
  readonly hold: Pick<Hold, 'isLost'>
}

/** Executes one command of a plan and returns the id of the resource. */
async function performStep(
  { edge, call, origin, ids }: Execution,
  change: PlannedChange,
  { row: name, body: given }: Step,
  isFirst: boolean,
): Promise<string | Refusal> {
  const { resource_type: type, key, known } = change
  const facts = resourceFacts[type]
  const id = ids[placeOf(type, key)] ?? ''
  const references = Object.entries(change.symbolic ?? {}).map(([field, value]) => [
    field,
    resolveReferences(value, ids),
  ])
  const applied = withReferences(
    change.binding?.applied ?? {},
    Object.fromEntries(references) as Record<string, unknown>,
    hashIn(edge),
  )
  const binding = {
    ...change.binding,
    resource_id: id,
    ...(change.binding?.applied && { applied }),
  } as InternalBinding
  const claim: Required<BlueprintClaim> = {
    blueprint: {
      binding,
      ...(isFirst && known && { expected_updated_at: known.updated_at }),
    },
  }
  if (name === 'blueprint.bind' || name === 'blueprint.unbind') {
    const project = scopeId(edge, call)
    const outcome = await edge.world.command({
      project,
      kind: facts.owner,
      id: facts.owner === 'project' ? project : id,
      command_id: edge.world.newCommandId(),
      origin,
      ...(name === 'blueprint.bind'
        ? { name, input: claim }
        : {
            name,
            input: { resource_type: type, resource_id: id, ...identityOf(binding) },
          }),
    })
    return isRefusal(outcome) ? outcome : id
  }
  const creates = name === facts.rows?.create
  const referring = referringMembers(facts)
  const body = Object.fromEntries(
    Object.entries(given).map(([member, value]) => [
      member,
      referring.has(member) ? resolveReferences(value, ids) : value,
    ]),
  )
  const assigns = name !== facts.rows?.change && name !== facts.rows?.remove && !creates
  const slot = assigns || facts.slot.from === 'id' ? id : String(known?.record['name'] ?? '')
  const part: Call = {
    ...call,
    name,
    row: rowOf(name),
    slots: {
      ...(call.slots['project'] !== undefined && { project: call.slots['project'] }),
      ...(!creates && { [assigns ? 'id' : facts.slot.name]: slot }),
    },
    query: {},
    body,
    part: creates && id !== '' ? { id } : {},
  }
  const outcome = await edge.parts.perform(edge, part, { ...claim })
  if (isRefusal(outcome)) return outcome
  const made = (outcome.reply as { readonly id?: string } | undefined)?.id
  return creates && made !== undefined ? made : id
}

/**
 * Executes the commands of the changes, tier by tier. Returns the first refusal in plan order.
 * @param reverse whether to start with the highest tier, as for deletions.
 */
export async function executeChanges(
  execution: Execution,
  changes: readonly PlannedChange[],
  reverse = false,
): Promise<Refusal | undefined> {
  const { edge } = execution
  const tiers = [...new Set(changes.map((change) => resourceFacts[change.resource_type].tier))]
  tiers.sort((a, b) => (reverse ? b - a : a - b))
  for (const tier of tiers) {
    const ofTier = changes.filter(
      ({ resource_type, steps }) => resourceFacts[resource_type].tier === tier && steps.length > 0,
    )
    let failed = false
    const outcomes = await concurrently(
      MAX_CONCURRENT,
      ofTier,
      async (change): Promise<Refusal | undefined> => {
        for (const [index, step] of change.steps.entries()) {
          if (failed) return undefined
          if (execution.hold.isLost()) return refuse('blueprint_busy', { retry_after: 1 })
          const outcome = await performStep(execution, change, step, index === 0)
          if (isRefusal(outcome)) {
            failed = true
            return locateRefusal(change, outcome)
          }
          execution.ids[placeOf(change.resource_type, change.key)] = outcome
        }
        return undefined
      },
    )
    // The preparations of the next tier must see the changes of this tier.
    edge.directory.forget(scopeId(edge, execution.call))
    const refused = outcomes.find((one) => one !== undefined)
    if (refused) return refused
  }
  return undefined
}
