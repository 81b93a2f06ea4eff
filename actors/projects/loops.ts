/** The loops of the project, as far as it must know of them (protocol/loops/standing.ts): which actions they call, and whom to end. */
import type { LoopsCommands, LoopsEvent, LoopStanding } from '../../protocol/loops/standing.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Decision } from '../actor.ts'
import type { ProjectState } from './state.ts'

type Decided = Decision<LoopsEvent, undefined>
/** Loops that one commit tells to end. */
const AT_ONCE = 500
/** A loop that is gone is remembered for a day, in milliseconds: nothing is delivered later than that. */
const KEEP_GONE = 86_400_000

/** A loop as its project knows it; `gone`: since when it is no more, Unix milliseconds. */
export interface KnownLoop {
  readonly version: number
  readonly actions: readonly string[]
  readonly gone?: number
}

/** A loop says how it stands. */
export function noteLoop(
  { loops, ended }: ProjectState,
  { loop_id, version, actions, gone }: LoopStanding,
): Decided {
  if ((getOwn(loops, loop_id)?.version ?? 0) >= version) return { events: [], reply: undefined }
  const noted: LoopsEvent = { type: 'loop.noted', loop_id, version, actions, ...(gone && { gone }) }
  return {
    events:
      ended === undefined || gone
        ? [noted]
        : [noted, { type: 'project.ended', organization: ended, loops: [loop_id] }],
    reply: undefined,
  }
}

/** The project is gone: so are its loops, some hundred with each commit. */
export function endProject(
  { loops }: ProjectState,
  { organization, after = '' }: LoopsCommands['project.end']['input'],
): Decided {
  const left = Object.keys(loops)
    .filter((id) => id > after && loops[id]?.gone === undefined)
    .sort()
  const told = left.slice(0, AT_ONCE)
  const next = left.length > AT_ONCE ? told.at(-1) : undefined
  return {
    events: [
      { type: 'project.ended', organization, loops: told, ...(next !== undefined && { next }) },
    ],
    reply: undefined,
  }
}

/** Ids of the loops whose runs may call an action. */
export const callersOf = ({ loops }: ProjectState, action: string): string[] =>
  Object.keys(loops).filter((id) => loops[id]?.actions.includes(action))

/** How the events change what is known. */
export const evolveLoops = {
  'loop.noted': (
    state: ProjectState,
    { loop_id, version, actions, gone }: Extract<LoopsEvent, { type: 'loop.noted' }>,
    at: number,
  ): ProjectState => {
    for (const [id, known] of Object.entries(state.loops))
      if (known.gone !== undefined && known.gone < at - KEEP_GONE) delete state.loops[id]
    state.loops[loop_id] = { version, actions, ...(gone && { gone: at }) }
    return state
  },
  'project.ended': (
    state: ProjectState,
    { organization }: Extract<LoopsEvent, { type: 'project.ended' }>,
  ): ProjectState => Object.assign(state, { ended: organization }),
}
