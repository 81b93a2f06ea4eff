/**
 * Preparation of the row that creates answer links. The gateway creates the links for the reply, so
 * they are never part of a command or of the journal.
 */
import { parseTimestamp } from '../../../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import { linkableTargets, roundOf } from '../../../protocol/interactions/resolve.ts'
import type { Call, Edge } from '../../call.ts'
import type { Prepared } from '../../prepare.ts'
import { linkToken } from './token.ts'

/**
 * Creates a link for each requested target, or, when none is requested, for all targets that can
 * still answer. The interaction's actor decides whether each target may have a link.
 */
export async function signLinks(
  { world }: Edge,
  { project, slots, body }: Call,
): Promise<Prepared | Refusal> {
  const id = slots['id'] ?? ''
  if (!project || !isId(id, 'interaction')) return refuse('not_found')
  const record = await world.ask({ project: project.id, kind: 'interaction', id }, 'get', {})
  if (isRefusal(record)) return record
  if (!record) return refuse('not_found')
  const round = roundOf(record)
  const { expires_at } = record
  const expires = expires_at === undefined ? undefined : parseTimestamp(expires_at)
  const wished = body['target_user_ids'] as readonly string[] | undefined
  const items = [...new Set(wished ?? linkableTargets(record))].map((target) => {
    const token = linkToken(world, {
      project: project.id,
      interaction: id,
      target,
      round,
      ...(expires !== undefined && { expires }),
    })
    return {
      target_user_id: target,
      url: `${world.settings.public_url ?? ''}/answer/${token}`,
      ...(expires_at !== undefined && { expires_at }),
    }
  })
  return { input: { round }, reply: { items } }
}
