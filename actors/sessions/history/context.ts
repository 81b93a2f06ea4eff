/** Application context in a session: rows that only the model is shown, written when they say something new. */
import { refuse, type Refusal } from '../../../protocol/errors.ts'
import type { ReminderBlock } from '../../../protocol/sessions/turns/blocks.ts'
import type { AppContext } from '../../../protocol/sessions/turns/context.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import { writeHidden, type Draft } from '../draft.ts'
import type { Live } from '../state.ts'

const named = ({ name }: AppContext): string => `app-${name}`
/** Names of these that the session cannot remember beside those that it knows. */
const beyond = ({ contexts }: Live, names: readonly string[]): string[] =>
  names
    .filter((name) => !(name in contexts))
    .slice(limits.context.names - Object.keys(contexts).length)
/** Why a message may not tell this: a name that is remembered stays so. */
export const crowded = (state: Live, given: readonly AppContext[] = []): Refusal | undefined =>
  beyond(state, given.map(named)).length > 0
    ? refuse(
        'conflict',
        { limit: limits.context.names },
        'The session knows as many names of context as it may; give one of them a new value.',
      )
    : undefined

/** Write what the model does not see as it is now: new, changed, or gone with a compaction. New names are left out when there are too many. @param id of the turn. */
export function writeContext(on: Draft, id: string, given: readonly AppContext[]): void {
  const fresh = new Map(given.map((one) => [named(one), one.content]))
  const over = new Set(beyond(on.state, [...fresh.keys()]))
  const wanted = [
    ...Object.entries(on.state.contexts).filter(([name]) => !fresh.has(name)),
    ...[...fresh].filter(([name]) => !over.has(name)),
  ]
  const shown = new Map(
    on.state.window.flatMap(({ content }) =>
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
      writeHidden(on, { turn: { id, index: null }, role: 'system', content: [block] })
  }
}
