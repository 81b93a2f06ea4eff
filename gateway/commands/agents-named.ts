/**
 * Checks that a definition refers only to existing agents. The check is made when the definition is
 * saved, and when a run with an inline definition starts.
 */
import { isRefusal, type Refusal, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { agentsNamed } from '../../protocol/rules/workflow-check/agents.ts'
import { below } from '../../protocol/rules/workflow-check/path.ts'
import type { Step } from '../../protocol/workflows/spec.ts'
import type { Edge } from '../call.ts'

/**
 * The fields of a definition that refer to agents: the steps, and the agent of a loop, which is the
 * default for its steps.
 */
interface Naming {
  readonly steps?: readonly Step[]
  readonly agent_id?: string
}

/**
 * Refuses a definition that refers to an agent by an id or a name that the project does not have.
 * The refusal lists the locations of at most 50 unknown agents. Returns undefined when all agents
 * exist.
 */
export async function refuseUnknownAgents(
  { directory }: Pick<Edge, 'directory'>,
  project: string,
  { steps = [], agent_id }: Naming,
  path = '',
  also: ReadonlySet<string> = new Set(),
): Promise<Refusal | undefined> {
  const all = [
    ...(agent_id ? [{ field: below(path, 'agent_id'), name: agent_id }] : []),
    ...agentsNamed(steps, below(path, 'steps')).flatMap(({ field, name }) =>
      name === undefined ? [] : [{ field, name }],
    ),
  ]
  if (all.length === 0) return undefined
  const known = await directory.project(project)
  if (isRefusal(known)) return known
  const names = new Set(Object.values(known.agents).map(({ name }) => name))
  const faults = all
    .filter(({ name }) => !getOwn(known.agents, name) && !names.has(name) && !also.has(name))
    .map(({ field, name }) => ({
      field,
      message: 'there is no such agent in this project',
      actual: name,
    }))
  return faults.length > 0 ? refuseFields(...faults.slice(0, 50)) : undefined
}
