/** Application context in a session: rows that only the model is shown, written when they say something new. */
import type { ReminderBlock } from '../../protocol/session/blocks.ts'
import type { AppContext } from '../../protocol/session/context.ts'
import { limits } from '../../protocol/session/limits.ts'
import { writeHidden, type Draft } from './draft.ts'

/** Write what the model does not see as it is now: new, changed, or gone with a compaction. @param id of the turn. */
export function writeContext(on: Draft, id: string, given: readonly AppContext[]): void {
  const fresh = new Map(given.map(({ name, content }) => [`app-${name}`, content]))
  const wanted = [...Object.entries(on.state.contexts).filter(([name]) => !fresh.has(name)), ...fresh].slice(-limits.context.names)
  const shown = new Map(on.state.window.flatMap(({ content }) => content.flatMap((block) => (block.type === 'reminder' && block.name.startsWith('app-') ? [[block.name, block.content] as const] : []))))
  for (const [name, content] of wanted) {
    const block: ReminderBlock = { type: 'reminder', name, tier: 'contextual', content }
    if (shown.get(name) !== content) writeHidden(on, { turn: { id, index: null }, role: 'system', content: [block] })
  }
}
