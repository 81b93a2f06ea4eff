/**
 * Messages from a run to the `events` actor of its project: the waits of the run, and the source
 * events that the run publishes.
 */

import { withAdditions } from '../../../protocol/additions.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import type { Address } from '../../../protocol/entry.ts'
import type {
  Awaited,
  Causation,
  Chain,
  ServicePublication,
} from '../../../protocol/events/sources.ts'
import type { EmittedType } from '../../../protocol/events/types.ts'
import { type RunRecord, shownRun } from '../../../protocol/loops/record.ts'
import { type Patch, patch } from '../../../protocol/patch.ts'
import { extended } from '../../../protocol/rules/extended.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { type Run, runAdditions } from '../../../protocol/runs/schema.ts'
import type { Effect } from '../../actor.ts'
import { reducePayload } from '../../events/reduce-payload.ts'
import type { Note, PendingSignal, RunState } from '../state.ts'

/**
 * Facts about a run for its source events, stored in the private note of the run event that
 * publishes them.
 */
export interface SourceEventFacts {
  readonly depth: number
  readonly chain?: Chain
  /** Fields for the payload and `meta`: the id of the run's definition or loop. */
  readonly of: JsonObject
  /**
   * Additional fields of the payload, present only in journals of earlier releases. Otherwise
   * `record` provides them.
   */
  readonly more?: JsonObject
  /**
   * The record before the event, without the fields that the event itself changes. Absent in
   * journals of earlier releases.
   */
  readonly record?: Partial<RunRecord>
}
/** Returns the depth and causal chain of the source events of a run. */
export const causeOf = ({ engine }: RunState): Causation => ({
  depth: (engine.cause_depth ?? 0) + 1,
  ...(engine.chain && { chain: engine.chain }),
})
/**
 * Maximum number of characters of the record in a source event of a run that has not ended. The
 * limit is low because every item of a `for_each` step can publish several such events.
 */
const MAX_RUNNING_RECORD_LENGTH = 16_384

/**
 * Returns the facts about a run for the source events that it publishes.
 * @param changes the changes to the record at the end of the run; absent while the run has not
 * ended. The result omits the changed fields, because the event that ends the run contains them.
 */
export function aboutOf(state: RunState, changes?: Patch<RunRecord>): SourceEventFacts {
  const { definition_id, loop_id } = state.record
  const record: Partial<Record<keyof RunRecord, unknown>> = {}
  let name: keyof RunRecord
  for (name in state.record)
    if (!changes || !Object.hasOwn(changes, name)) record[name] = state.record[name]
  const { depth, chain } = causeOf(state)
  return {
    depth,
    ...(chain && { chain }),
    of: loop_id !== undefined ? { loop_id } : definition_id === '' ? {} : { definition_id },
    record: reducePayload(record, changes ? undefined : MAX_RUNNING_RECORD_LENGTH),
  }
}
/**
 * Returns a record as clients see it, without its largest fields if it is too large for a source
 * event.
 */
export const publishedRun = (record: RunRecord): JsonObject =>
  reducePayload(withAdditions(runAdditions.additions, undefined, shownRun(record)) as Run)

const toEvents = ({ project }: Address, name: string, input: unknown): Effect[] => [
  { tell: { to: { kind: 'events', id: project }, name, input } },
]
/**
 * Returns the publication of a source event about a run.
 * @param record the record after the event. It is converted to its published form lazily: only if a
 * webhook receives the event, or if the event is sent to another process.
 */
const publication = (
  self: Address,
  event_type: EmittedType,
  { depth, chain, of }: SourceEventFacts,
  payload: JsonObject,
  record?: RunRecord,
): ServicePublication => {
  const published: ServicePublication = {
    event_type,
    source_kind: 'loop_run',
    source_id: self.id,
    event: { run_id: self.id, ...of, ...payload },
    meta: { run_id: self.id, ...of },
    depth,
    ...(chain && { chain }),
  }
  return record
    ? Object.defineProperty(published, 'record', {
        enumerable: true,
        get: () => publishedRun(record),
      })
    : published
}
const aboutIn = ({ private: note }: RunEvent): SourceEventFacts =>
  (note as { readonly about?: SourceEventFacts } | undefined)?.about ?? { depth: 1, of: {} }

const recordAfter = ({ record }: SourceEventFacts, { run = {} }: RunEvent): RunRecord | undefined =>
  record && patch(record as RunRecord, run)
/**
 * Returns the fields of the record that the payload of the event about the run's end also contains.
 */
const moreOf = ({
  started_at,
  external_id,
  name,
  loop_name,
  stop_reason,
  status,
}: RunRecord): JsonObject => ({
  ...(started_at !== undefined && { started_at }),
  ...(external_id !== undefined && { external_id }),
  ...(name !== undefined && { name }),
  ...(loop_name !== undefined && { loop_name }),
  ...(stop_reason !== undefined && status !== 'completed' && { stop_reason }),
})

/** Publishes that the run has ended, and notifies the environments of the run. */
export const publishEnd =
  (event_type: EmittedType) =>
  (event: RunEvent, self: Address): Effect[] => {
    const { completed_at } = event.run ?? {}
    const about = aboutIn(event)
    const record = recordAfter(about, event)
    const payload = extended(
      extended(record ? moreOf(record) : about.more, event.payload),
      typeof completed_at === 'string' && { completed_at },
    )
    return [
      ...toEvents(self, 'source.publish', publication(self, event_type, about, payload, record)),
      ...forwardCommand(event),
    ]
  }
/** Publishes the verdict of a check, an exceeded budget, or stalled progress. */
export const publishVerdict =
  (event_type: EmittedType) =>
  (event: RunEvent, self: Address): Effect[] => {
    const about = aboutIn(event)
    return toEvents(
      self,
      'source.publish',
      publication(self, event_type, about, event.payload ?? {}, recordAfter(about, event)),
    )
  }
/**
 * Returns the source event of a signal, both for the step that waits for the signal and for all
 * other consumers.
 */
export const sourceOf = (
  run_id: string,
  { id, name: signal_name, payload }: PendingSignal,
): ServicePublication => ({
  id,
  event_type: `signal.${signal_name}`,
  source_kind: 'signal',
  source_id: run_id,
  event: { run_id, signal_name, payload },
  meta: { run_id, signal_name },
  depth: 0,
})
/** Publishes a signal that was sent to the run. */
export function publishSignal({ private: note }: RunEvent, self: Address): Effect[] {
  return toEvents(
    self,
    'source.publish',
    sourceOf(self.id, (note as { readonly store: PendingSignal }).store),
  )
}
/** Sends the commands that the event contains, if any. */
export function forwardCommand({ private: content }: RunEvent): Effect[] {
  const { tell, tells } = (content ?? {}) as Note
  const first: Effect[] = tell ? [{ tell }] : []
  return tells ? [...first, ...tells.map((one) => ({ tell: one }))] : first
}
/** Registers the wait of a step with the matcher. */
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
/** Removes a wait that has ended from the matcher, if the event contains its id. */
export function unwatch({ private: content }: RunEvent, self: Address): Effect[] {
  const wait_id = (content as Note | undefined)?.unwatch
  return wait_id === undefined ? [] : toEvents(self, 'wait.unwatch', { run_id: self.id, wait_id })
}
