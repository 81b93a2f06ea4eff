/** Maximum numbers of resources, and the refusal to exceed them. */
import { agentLimits } from '../agents/schema.ts'
import { type Refusal, refuse } from '../errors.ts'
import { skillLimits } from '../skills/schema.ts'
import { toolkitLimits } from '../toolkits/schema.ts'

/** The limit for each type of resource, with the sentence that states the limit. */
const limits = {
  action: [1000, (limit: number) => `A project has at most ${limit} actions.`],
  agent: [agentLimits.agents, (limit: number) => `A project has at most ${limit} agents.`],
  role: [200, (limit: number) => `A project has at most ${limit} custom roles.`],
  skill: [skillLimits.skills, (limit: number) => `At most ${limit} skills are allowed here.`],
  toolkit: [toolkitLimits.toolkits, (limit: number) => `A project has at most ${limit} toolkits.`],
  webhook: [100, (limit: number) => `A project has at most ${limit} webhooks.`],
} as const
/** A resource type with a limit on the number of resources. */
export type LimitedType = keyof typeof limits
export const limitedTypes = Object.keys(limits) as readonly LimitedType[]

/**
 * Returns the refusal to create another resource of a type; undefined if `count`, the number of
 * existing resources, is below the limit.
 */
export function refuseBeyondLimit(type: LimitedType, count: number): Refusal | undefined {
  const [limit, sentence] = limits[type]
  return count < limit ? undefined : refuse('conflict', { limit }, sentence(limit))
}
