/**
 * Reads the results of tool calls whose row is still streaming. No view has these results, so they
 * are read from the session's actor.
 */
import type { JsonObject } from '../../protocol/common.ts'
import { isRefusal } from '../../protocol/errors.ts'
import type { TranscriptMessage } from '../../protocol/sessions/schema.ts'
import { toolUses } from '../../protocol/sessions/turns/blocks.ts'
import type { World } from '../ports.ts'
import { toolResultData } from './transcript/notes.ts'

/**
 * Returns the available results of the tool calls in streaming rows, in the format of the older
 * stream. The list is empty if the session's actor does not answer.
 * @param rows returns the streaming rows. It is called again after the actor has answered, because
 * rows may have ended in the meantime.
 */
export async function knownResults(
  world: Pick<World, 'ask' | 'now'>,
  project: string,
  session_id: string,
  rows: () => readonly TranscriptMessage[],
): Promise<JsonObject[]> {
  const uses = () => new Set(rows().flatMap(({ content }) => toolUses(content).map(({ id }) => id)))
  if (uses().size === 0) return []
  const known = await world
    .ask({ project, kind: 'session', id: session_id }, 'results', {})
    .catch(() => [])
  if (!known || isRefusal(known)) return []
  const open = uses()
  return known
    .filter(({ result }) => open.has(result.tool_use_id))
    .map((one) => toolResultData(one, world.now()))
}
