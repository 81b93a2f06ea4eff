/** Messages to a run about environments that were created for it. */
import { boundEnvironment } from '../../../protocol/environments/commands.ts'
import type { RunCommands } from '../../../protocol/internal.ts'
import type { Patch } from '../../../protocol/patch.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { terminal } from '../../../protocol/runs/schema.ts'
import type { Cause, Decision } from '../../actor.ts'
import { emit, emptyDecision, newDraft, withoutReply } from '../draft.ts'
import type { Engine, RunState } from '../state.ts'
import { runEnded } from '../steps/environment.ts'

/** Returns the change that adds an environment, or undefined if the run knows the environment. */
function addition({ record, engine }: RunState, id: string): Patch<Engine> | undefined {
  if (id === boundEnvironment(record.id))
    return engine.own_environment ? undefined : { own_environment: true }
  const known = engine.environments ?? []
  return known.includes(id) ? undefined : { environments: [...known, id] }
}

/**
 * Stores an environment, so that the end of the run is reported to it. If the run has already
 * ended, its end is reported at once. A failed run stores the environment too, because it may be
 * recovered and end again.
 */
export function environmentBound(
  state: RunState | null,
  { environment_id }: RunCommands['run.environment']['input'],
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (!state) return emptyDecision
  const engine = addition(state, environment_id)
  const { id, status } = state.record
  const tell = terminal.has(status) ? runEnded(environment_id, id, status) : undefined
  if (!engine && !tell) return emptyDecision
  const draft = newDraft(state, cause)
  emit(draft, 'environment.bound', { note: { ...(engine && { engine }), ...(tell && { tell }) } })
  return withoutReply(draft)
}
