/**
 * The data that a project tracks about its loops (protocol/loops/standing.ts): the actions that
 * they call, and which loops must be ended when the project is deleted.
 */

import { type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { LoopStanding, LoopsCommands, LoopsEvent } from '../../protocol/loops/standing.ts'
import type { Decision } from '../actor.ts'
import type { ProjectState } from './state.ts'

type Decided = Decision<LoopsEvent, undefined>
/** Maximum number of loops that one commit ends. */
const MAX_ENDED_LOOPS = 500
/**
 * Milliseconds for which a deleted loop is remembered (one day), so that an older summary that
 * arrives late is detected.
 */
const KEEP_DELETED_MS = 86_400_000

/** A loop as its project tracks it; `gone`: Unix milliseconds of its deletion. */
export interface KnownLoop {
  readonly version: number
  readonly actions: readonly string[]
  readonly gone?: number
}

/** Records the summary that a loop reports. If the project has been deleted, also ends the loop. */
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

/** Ends the loops of a deleted project, up to 500 in each commit. */
export function endProject(
  { loops }: ProjectState,
  { organization, after = '' }: LoopsCommands['project.end']['input'],
): Decided {
  const left = Object.keys(loops)
    .filter((id) => id > after && loops[id]?.gone === undefined)
    .sort()
  const endedNow = left.slice(0, MAX_ENDED_LOOPS)
  const next = left.length > MAX_ENDED_LOOPS ? endedNow.at(-1) : undefined
  return {
    events: [
      { type: 'project.ended', organization, loops: endedNow, ...(next !== undefined && { next }) },
    ],
    reply: undefined,
  }
}

/** Maximum number of loops that a refusal lists. */
const MAX_LOOPS_NAMED = 20
/**
 * Refuses the deletion of an action with `conflict` while active loops call it.
 * @param except ids of the loops that are not considered.
 */
export function refuseCalled(
  { loops }: Pick<ProjectState, 'loops'>,
  action: string,
  except: readonly string[] = [],
): Refusal | undefined {
  const callers = Object.keys(loops).filter(
    (id) => loops[id]?.actions.includes(action) && !except.includes(id),
  )
  return callers.length > 0
    ? refuse(
        'conflict',
        { loop_ids: callers.slice(0, MAX_LOOPS_NAMED), loop_count: callers.length },
        'Active loops call this action; remove it from their steps, or pause or delete them first.',
      )
    : undefined
}

/** Reducers for the events of tracked loops. */
export const evolveLoops = {
  'loop.noted': (
    state: ProjectState,
    { loop_id, version, actions, gone }: Extract<LoopsEvent, { type: 'loop.noted' }>,
    at: number,
  ): ProjectState => {
    for (const [id, known] of Object.entries(state.loops))
      if (known.gone !== undefined && known.gone < at - KEEP_DELETED_MS) delete state.loops[id]
    state.loops[loop_id] = { version, actions, ...(gone && { gone: at }) }
    return state
  },
  'project.ended': (
    state: ProjectState,
    { organization }: Extract<LoopsEvent, { type: 'project.ended' }>,
  ): ProjectState => Object.assign(state, { ended: organization }),
}
