/**
 * Gets the definition of an agent from the organization's definition resolver. The resolver is not
 * called if the organization uses stored definitions.
 */
import type { Agent } from '../../../protocol/agents/schema.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { type Bundle, selectorOf, type TriggerKind } from '../../../protocol/resolver/callout.ts'
import type { CapabilityReader } from '../../queries/agent-capabilities.ts'

/**
 * Returns the definition, or undefined when the stored settings of the agent apply.
 * @param trigger what starts the turn. If absent, no turn starts, and the resolver is not called.
 */
export async function bundleOf(
  { world, directory }: CapabilityReader,
  project: string,
  agent: Agent,
  trigger?: TriggerKind,
): Promise<Bundle | undefined | Refusal> {
  const organization = await directory.organization()
  if (isRefusal(organization)) return organization
  const { resolver: configuration, projects } = organization
  if (configuration?.settings.source !== 'client_resolver') return undefined
  const { definitions } = world
  if (!definitions)
    return refuse('definition_resolver_unavailable', { reason: 'this node calls no resolver' })
  const external_ref = getOwn(projects, project)?.external_ref
  const question = {
    configuration,
    project: { id: project, ...(external_ref !== undefined && { external_ref }) },
    agent_id: agent.id,
    selector: selectorOf(agent),
  }
  return trigger === undefined
    ? definitions.stored(question)
    : definitions.resolve(question, trigger)
}
