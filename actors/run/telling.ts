/** What the source events of the project hear of a run: what it waits for, and what it says of itself. */
import type { RunEvent } from '../../protocol/runs/events.ts'
import type { Open } from '../../protocol/common.ts'
import type { Address } from '../../protocol/entry.ts'
import type { Awaited, Chain, Publication } from '../../protocol/sources.ts'
import type { Effect } from '../actor.ts'
import type { Note, RunState, StoredSignal } from './state.ts'

/** What source events of a run say of the run besides; private part of the event that they follow from. */
export interface About {
  readonly depth: number
  readonly chain?: Chain
  /** Fields of payload and meta: which definition or loop it is a run of. */
  readonly of: Open
  /** Fields of the payload only. */
  readonly more?: Open
}
/** How the source events of a run came about. */
export const causeOf = ({ engine }: RunState): Pick<Publication, 'depth' | 'chain'> => ({
  depth: (engine.cause_depth ?? 0) + 1,
  ...(engine.chain && { chain: engine.chain }),
})
/** What a run is, for the source events that it publishes. */
export function aboutOf(state: RunState): About {
  const { definition_id, loop_id } = state.record
  return {
    ...causeOf(state),
    of: loop_id !== undefined ? { loop_id } : definition_id === '' ? {} : { definition_id },
  }
}

const toEvents = ({ project }: Address, name: string, input: unknown): Effect[] => [
  { tell: { to: { kind: 'events', id: project }, name, input } },
]
const publication = (
  self: Address,
  event_type: string,
  { depth, chain, of, more }: About,
  payload: Open,
): Publication => ({
  event_type,
  source_kind: 'loop_run',
  source_id: self.id,
  event: { run_id: self.id, ...of, ...more, ...payload },
  meta: { run_id: self.id, ...of },
  depth,
  ...(chain && { chain }),
})
const aboutIn = ({ private: note }: RunEvent): About =>
  (note as { readonly about?: About } | undefined)?.about ?? { depth: 1, of: {} }

/** The run has ended. */
export const sayEnd = (event: RunEvent, self: Address): Effect[] => {
  const { completed_at } = event.run ?? {}
  return toEvents(
    self,
    'source.publish',
    publication(self, event.type, aboutIn(event), {
      ...event.payload,
      ...(typeof completed_at === 'string' && { completed_at }),
    }),
  )
}
/** A check has given its verdict, or the budget is spent. */
export const sayVerdict = (event: RunEvent, self: Address): Effect[] =>
  toEvents(
    self,
    'source.publish',
    publication(self, event.type, aboutIn(event), event.payload ?? {}),
  )
/** The source event that a signal is, for the step that waits for it as for everybody else. */
export const sourceOf = (
  run_id: string,
  { id, name: signal_name, payload }: StoredSignal,
): Publication => ({
  id,
  event_type: `signal.${signal_name}`,
  source_kind: 'signal',
  source_id: run_id,
  event: { run_id, signal_name, payload },
  meta: { run_id, signal_name },
  depth: 0,
})
/** A signal was sent to the run. */
export function saySignal({ private: note }: RunEvent, self: Address): Effect[] {
  return toEvents(
    self,
    'source.publish',
    sourceOf(self.id, (note as { readonly store: StoredSignal }).store),
  )
}
/** What the event itself says that somebody is told. */
export function tellOnward({ private: content }: RunEvent): Effect[] {
  const tell = (content as Note | undefined)?.tell
  return tell ? [{ tell }] : []
}
/** A step wants to wait for an event. */
export function askToWatch({ private: content = {} }: RunEvent, self: Address): Effect[] {
  const { engine, place } = content as Note
  const wait = place?.wait ?? engine?.wait
  if (wait?.kind !== 'event') return []
  const { id: wait_id, event_type, source_id, match, condition } = wait
  const awaited: Awaited = {
    wait_id,
    event_type,
    ...(source_id !== undefined && { source_id }),
    ...(match && { match }),
    ...(condition !== undefined && { condition }),
  }
  return toEvents(self, 'wait.watch', { run_id: self.id, wait: awaited })
}
/** A wait is over, if the event says so of one that the matcher knows. */
export function unwatch({ private: content }: RunEvent, self: Address): Effect[] {
  const wait_id = (content as Note | undefined)?.unwatch
  return wait_id === undefined ? [] : toEvents(self, 'wait.unwatch', { run_id: self.id, wait_id })
}
