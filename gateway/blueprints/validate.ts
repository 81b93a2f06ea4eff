/**
 * Checks a plan before anything is written: the rules of each row that a schema cannot express, and
 * the agents, actions, workflows, loops and providers that definitions refer to. Resources that the
 * same request creates count as existing.
 */
import type { PlannedChange } from '../../protocol/blueprints/plan.ts'
import { isSymbol } from '../../protocol/blueprints/references.ts'
import type { ResourceTypeName } from '../../protocol/blueprints/resources.ts'
import type { Step as PlanStep } from '../../protocol/blueprints/steps.ts'
import { type Identity, identityOf } from '../../protocol/blueprints/stored.ts'
import { resourceFacts } from '../../protocol/blueprints/types.ts'
import type { Origin } from '../../protocol/entry.ts'
import { type FieldError, isRefusal, type Refusal, refuseFields } from '../../protocol/errors.ts'
import { publishedHandle } from '../../protocol/naming.ts'
import { type Spec, type Step, workflowsNamed } from '../../protocol/workflows/spec.ts'
import { type Call, type Edge, rows, scopeId } from '../call.ts'
import { refuseActions } from '../commands/actions-named.ts'
import { refuseUnknownAgents } from '../commands/agents-named.ts'
import { refuseProvider } from '../commands/environments/providers.ts'
import { refuseUnknownLoops } from '../commands/loops/loops-named.ts'
import { refuseUnknownWorkflow } from '../commands/loops.ts'
import { refuseByCapacity } from './capacity.ts'
import { locateRefusal } from './execute.ts'
import { foreseenRefusal } from './foreseen.ts'

/** Returns the names that the request gives to resources of one type. */
function namesOf(changes: readonly PlannedChange[], type: ResourceTypeName): Set<string> {
  const { match, rows: names } = resourceFacts[type]
  return new Set(
    changes.flatMap(({ resource_type, steps }) => {
      if (resource_type !== type) return []
      const body = steps.find(({ row }) => row === names?.create || row === names?.change)?.body
      const name = body?.[match]
      return typeof name === 'string' ? [name] : []
    }),
  )
}

/** Omits a reference to an agent that the request creates, because the agent has no id yet. */
function withoutSymbols(body: PlanStep['body']): PlanStep['body'] {
  const { agent_id, ...rest } = body
  return isSymbol(agent_id) ? rest : body
}
/** Returns the definition in the body of a loop or workflow, and its path in the body. */
const definitionOf = (
  type: ResourceTypeName,
  body: PlanStep['body'],
): { readonly spec: Partial<Spec>; readonly path: string } | undefined =>
  type === 'loop'
    ? { spec: withoutSymbols(body) as Partial<Spec>, path: '' }
    : type === 'workflow' && body['spec'] !== undefined
      ? { spec: body['spec'] as Spec, path: 'spec' }
      : undefined

async function unknownWorkflows(
  { directory }: Edge,
  project: string,
  { steps = [] }: { readonly steps?: readonly Step[] },
  path: string,
  also: ReadonlySet<string>,
): Promise<Refusal | undefined> {
  if (workflowsNamed({ steps: [...steps] }).length === 0) return undefined
  const known = await directory.project(project)
  if (isRefusal(known)) return known
  const handles = new Set(Object.values(known.workflows).map(({ handle }) => handle))
  return refuseUnknownWorkflow(
    steps,
    (name) => {
      const handle = publishedHandle(name) ?? name
      return handles.has(handle) || also.has(handle) || Object.hasOwn(known.workflows, name)
    },
    path,
  )
}

/**
 * Checks the changes of a plan. Returns the first refusal, with field paths in the blueprint
 * request.
 */
export async function refusePlan(
  edge: Edge,
  call: Call,
  origin: Origin,
  changes: readonly PlannedChange[],
): Promise<Refusal | undefined> {
  const project = scopeId(edge, call)
  const [agents, workflows] = [namesOf(changes, 'agent'), namesOf(changes, 'workflow')]
  for (const change of changes)
    for (const step of change.steps) {
      const { row, body } = step
      const shape = rows[row]?.shape
      const check = shape?.check as ((body: unknown) => readonly FieldError[]) | undefined
      const faults = check?.(body) ?? []
      if (faults.length > 0) return locateRefusal(change, refuseFields(...faults))
      const defined = definitionOf(change.resource_type, body)
      const refused =
        foreseenRefusal(change, step, call.caller, edge.world.settings.brand) ??
        (defined &&
          (refuseActions(edge, call.caller, defined.spec, defined.path) ??
            refuseProvider(edge.world.settings, defined.spec, defined.path) ??
            (await refuseUnknownAgents(edge, project, defined.spec, defined.path, agents)) ??
            (await refuseUnknownLoops(edge, project, defined.spec, defined.path)) ??
            (await unknownWorkflows(edge, project, defined.spec, defined.path, workflows)))) ??
        (resourceFacts[change.resource_type].checkedByPreparation
          ? await checked(edge, call, origin, row, body)
          : undefined)
      if (refused) return locateRefusal(change, refused)
    }
  return refuseByCapacity(edge, project, changes, identityOf(call.body as Identity))
}
/** Runs the preparation of a row only to perform its checks. */
async function checked(
  edge: Edge,
  call: Call,
  origin: Origin,
  name: string,
  body: PlanStep['body'],
): Promise<Refusal | undefined> {
  const row = rows[name]
  if (!row) return undefined
  const part: Call = { ...call, name, row, query: {}, body, part: {} }
  return edge.parts.check(edge, part, origin)
}
