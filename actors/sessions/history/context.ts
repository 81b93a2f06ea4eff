/**
 * Application context in a session: rows that are shown only to the model. A row is written when
 * the window does not contain the current value of a context name.
 */
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { ReminderBlock } from '../../../protocol/sessions/turns/blocks.ts'
import type { AppContext } from '../../../protocol/sessions/turns/context.ts'
import { type Draft, writeHidden } from '../draft.ts'
import type { Live } from '../state.ts'

const named = ({ name }: AppContext): string => `app-${name}`
/** Returns the new context names for which the session has no room. */
const beyond = ({ contexts }: Live, names: readonly string[]): string[] =>
  names
    .filter((name) => !(name in contexts))
    .slice(limits.context.names - Object.keys(contexts).length)
/** Refuses context with too many new names. Known names are always accepted. */
export const refuseExcessContexts = (
  state: Live,
  contexts: readonly AppContext[] = [],
): Refusal | undefined =>
  beyond(state, contexts.map(named)).length > 0
    ? refuse(
        'conflict',
        { limit: limits.context.names },
        'The session has the maximum number of context names; reuse one of them.',
      )
    : undefined

/**
 * Writes each context value that the window does not contain: new values, changed values, and
 * values whose row has left the window. New names beyond the limit are omitted.
 * @param id id of the turn.
 */
export function writeContext(draft: Draft, id: string, contexts: readonly AppContext[]): void {
  const fresh = new Map(contexts.map((one) => [named(one), one.content]))
  const over = new Set(beyond(draft.state, [...fresh.keys()]))
  const wanted = [
    ...Object.entries(draft.state.contexts).filter(([name]) => !fresh.has(name)),
    ...[...fresh].filter(([name]) => !over.has(name)),
  ]
  if (wanted.length === 0) return
  const shown = new Map(
    draft.state.window.flatMap(({ content }) =>
      content.flatMap((block) =>
        block.type === 'reminder' && block.name.startsWith('app-')
          ? [[block.name, block.content] as const]
          : [],
      ),
    ),
  )
  for (const [name, content] of wanted) {
    const block: ReminderBlock = { type: 'reminder', name, tier: 'contextual', content }
    if (shown.get(name) !== content)
      writeHidden(draft, { turn: { id, index: null }, role: 'system', content: [block] })
  }
}
