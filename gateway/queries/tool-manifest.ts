/**
 * Answers the query for the tool manifest of an agent: resolves its toolkits and skills against the
 * project's catalog. The rules of resolution are in `protocol/agents/`.
 */
import { manifestOf } from '../../protocol/agents/manifest.ts'
import { type FieldError, isRefusal, refuseFields } from '../../protocol/errors.ts'
import { type LocalQuery, localQuery } from '../listing.ts'
import { entriesOf } from './action-catalog.ts'
import { agentSource } from './agent-capabilities.ts'

/** Handlers of the query rows, by row name. */
export const manifestQueries: Readonly<Record<string, LocalQuery>> = {
  'agent.tools': localQuery<'agent.tools'>(
    async (context, { id, toolkit_ids, skill_name, allowed_tools }) => {
      const { world, project = '' } = context
      const source = await agentSource(context, project, id)
      if (isRefusal(source)) return source
      const faults: FieldError[] = (toolkit_ids ?? []).flatMap((kit, index) =>
        source.toolkits.some((toolkit) => toolkit.id === kit)
          ? []
          : [
              {
                field: `toolkit_ids[${index}]`,
                message: 'the agent has no such toolkit',
                actual: kit,
              },
            ],
      )
      if (skill_name !== undefined && !source.skills.some(({ name }) => name === skill_name))
        faults.push({
          field: 'skill_name',
          message: 'the agent has no such skill',
          actual: skill_name,
        })
      if (faults.length > 0) return refuseFields(...faults)
      const entries = await entriesOf(world, project)
      if (isRefusal(entries)) return entries
      const toolkits = toolkit_ids
        ? source.toolkits.filter((toolkit) => toolkit_ids.includes(toolkit.id))
        : source.toolkits
      const { manifest, policy } = manifestOf({
        agent_id: id,
        toolkits,
        skills: source.skills,
        entries,
        brand: world.settings.brand.toLowerCase(),
        ...(skill_name !== undefined && { skill_name }),
        ...(allowed_tools && { allowed_tools }),
      })
      return { ...manifest, policy_hash: world.hash(policy) }
    },
  ),
}
