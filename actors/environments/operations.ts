/**
 * Commands from hosts: claims, progress and outcomes of operations, and reports about an
 * environment at its place.
 */

import { timestamp } from '../../protocol/common.ts'
import type { EnvironmentCommands, HostTask } from '../../protocol/environments/commands.ts'
import type { EnvironmentEvent, ExistingEnvironment } from '../../protocol/environments/events.ts'
import { keepWarmMs } from '../../protocol/environments/keep-warm.ts'
import { refuse } from '../../protocol/errors.ts'
import type { Cause, Decision } from '../actor.ts'
import { advance } from './advance.ts'
import {
  change,
  type Draft,
  type EnvironmentSettings,
  emit,
  emitSoft,
  finish,
  newDraft,
} from './draft.ts'
import { type EnvironmentState, isUsable } from './state.ts'
import { applyPolicy, endOperation, endWorker, recordDestruction, request } from './transitions.ts'

type Commands = EnvironmentCommands
type Decided<N extends keyof Commands> = Decision<EnvironmentEvent, Commands[N]['reply']>

/** Minimum time between two updates of `last_seen_at`, in milliseconds. */
const SEEN_MS = 600_000
/**
 * Milliseconds after the start of a worker, or after progress of an operation, during which reports
 * of the place may be outdated. Such reports end neither the worker nor the operation.
 */
const OVERLAP_MS = 5000
/** Minimum time between two requests for an operation, in milliseconds. */
const REPEAT_MS = 1000
/** Minimum pause in milliseconds after a failed teardown. The pause doubles with each failure. */
const MIN_TEARDOWN_MS = 30_000
/** Maximum pause in milliseconds after a failed teardown. */
const MAX_TEARDOWN_MS = 3_600_000

function taskOf(
  { record, origin, operation, worker }: ExistingEnvironment,
  project: string,
): HostTask {
  if (!operation) throw new Error('a task without an operation')
  return {
    operation: operation.number,
    kind: operation.kind,
    project,
    environment_id: record.id,
    name: record.name,
    provider: record.provider,
    lifetime: record.lifetime,
    ...(record.template_id !== undefined && { template_id: record.template_id }),
    ...(origin.runtime_version !== undefined && { runtime_version: origin.runtime_version }),
    repositories: record.repositories ?? [],
    ...(operation.kind === 'start' && {
      worker: { ...worker.launch, generation: worker.generation },
    }),
  }
}

/**
 * Records that a host has claimed the current operation. The only host of a place also takes over
 * an operation that an earlier process of this host claimed.
 */
export function claim(
  state: EnvironmentState,
  input: Commands['environment.claim']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decided<'environment.claim'> {
  const { operation: number, host, place, isolation, token_hash, sole } = input
  const operation = state?.operation
  if (!state || operation?.number !== number) return refuse('conflict')
  const isTaken = operation.host !== undefined && operation.host !== host
  if (isTaken && !sole) return refuse('conflict')
  const at = state.record.place
  if (at !== undefined && at !== place) return refuse('conflict')
  const draft = newDraft(state, cause, settings)
  if (isTaken && operation.kind === 'start') {
    // The earlier process may have started a worker, so the next one gets another number.
    endWorker(draft, 'failed')
    request(draft, 'start', true)
  }
  emit(draft, {
    type: 'environment.operation_claimed',
    number,
    host,
    place,
    ...(isolation !== undefined && { isolation }),
    ...(token_hash !== undefined && { token_hash }),
    at: cause.at,
  })
  return finish(draft, taskOf(draft.state, cause.self.project))
}

const isCurrent = (
  state: EnvironmentState,
  { operation, host }: { readonly operation: number; readonly host: string },
): state is ExistingEnvironment =>
  state?.operation?.number === operation && state.operation.host === host

/** Records that the host of the current operation is still working. */
export function progress(
  state: EnvironmentState,
  input: Commands['environment.progress']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decided<'environment.progress'> {
  if (!isCurrent(state, input)) return { events: [], reply: { current: false } }
  const draft = newDraft(state, cause, settings)
  emitSoft(draft, { type: 'environment.operation_progressed', at: cause.at })
  return finish(draft, { current: true })
}

/** Records the outcome of the current operation. */
export function report(
  state: EnvironmentState,
  input: Commands['environment.report']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decided<'environment.report'> {
  if (!isCurrent(state, input)) return { events: [], reply: undefined }
  const draft = newDraft(state, cause, settings)
  const kind = state.operation?.kind
  const isDone = input.outcome === 'done'
  const error = input.error ?? 'The provider failed.'
  if (kind === 'destroy' && isDone) recordDestruction(draft, 'succeeded')
  else {
    endOperation(draft, input.outcome)
    if (kind === 'provision') provisioned(draft, isDone ? undefined : error)
    else if (kind === 'start' && !isDone) {
      endWorker(draft, 'failed')
      change(draft, { error })
    } else if (kind === 'destroy') teardownFailed(draft, error)
  }
  advance(draft)
  return finish(draft, undefined)
}
function provisioned(draft: Draft, error: string | undefined): void {
  change(
    draft,
    error === undefined
      ? {
          status: 'ready',
          last_seen_at: timestamp(draft.cause.at),
          error: null,
          // The claim has already changed these fields in the state. This event updates the views.
          place: draft.state.record.place ?? null,
          isolation: draft.state.record.isolation ?? null,
        }
      : { status: 'failed', error },
  )
}
function teardownFailed(draft: Draft, error: string): void {
  const pause = Math.min(MIN_TEARDOWN_MS * 2 ** (draft.state.teardowns - 1), MAX_TEARDOWN_MS)
  change(draft, { status: 'failed', cleanup_status: 'failed', error })
  emit(draft, { type: 'environment.teardown_delayed', until: draft.cause.at + pause })
}

/** Handles a place's report on whether it has the environment. */
export function seen(
  state: EnvironmentState,
  input: Commands['environment.seen']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decided<'environment.seen'> {
  const { place, presence, generation } = input
  const isExpected =
    state !== null && state.record.status !== 'destroyed' && state.record.place === place
  if (!isExpected) return { events: [], reply: { expected: false } }
  const draft = newDraft(state, cause, settings)
  const { record, operation, worker } = state
  if (presence === 'missing') {
    if (isUsable(state)) {
      endWorker(draft, 'failed')
      change(draft, { status: 'orphaned', error: 'The provider does not know the environment.' })
    }
  } else {
    emitSoft(draft, { type: 'environment.heard', at: cause.at })
    const last = record.last_seen_at === undefined ? 0 : Date.parse(record.last_seen_at)
    if (record.status === 'orphaned')
      change(draft, { status: 'ready', last_seen_at: timestamp(cause.at), error: null })
    else if (cause.at >= last + SEEN_MS) change(draft, { last_seen_at: timestamp(cause.at) })
    if (
      !operation &&
      worker.state !== 'stopped' &&
      generation !== worker.generation &&
      cause.at >= worker.since + OVERLAP_MS
    )
      endWorker(draft, 'failed')
    continueOperation(draft, input.host)
  }
  advance(draft)
  return finish(draft, { expected: true })
}
/**
 * Handles the current operation after the environment's place has reported. If no host has claimed
 * the operation, requests it again. If the reporting host has claimed it, ends it as failed: a host
 * does not report an environment while it performs an operation on it, so the operation must have
 * been lost when the host restarted.
 */
function continueOperation(draft: Draft, reporter: string): void {
  const { operation } = draft.state
  if (!operation) return
  const { kind, host, asked, progress = asked } = operation
  if (host === undefined) {
    if (draft.cause.at >= asked + REPEAT_MS) request(draft, kind)
  } else if (host === reporter && draft.cause.at >= progress + OVERLAP_MS) {
    endOperation(draft, 'failed')
    if (kind === 'start') endWorker(draft, 'failed')
  }
}

/** Records that the worker's process has ended. */
export function exited(
  state: EnvironmentState,
  input: Commands['environment.exited']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decided<'environment.exited'> {
  const { place, generation, idle, error } = input
  const isCurrentWorker =
    state?.record.place === place &&
    state.worker.generation === generation &&
    state.worker.state !== 'stopped'
  if (!state || !isCurrentWorker) return { events: [], reply: undefined }
  const draft = newDraft(state, cause, settings)
  if (state.operation?.kind === 'start') endOperation(draft, 'failed')
  endWorker(draft, idle ? 'stopped' : 'failed')
  if (error !== undefined && !idle) change(draft, { error })
  const { launch } = state.worker
  if (!idle && keepWarmMs(launch.keep_warm ?? '') === Number.POSITIVE_INFINITY)
    emit(draft, { type: 'environment.worker_requested', launch })
  advance(draft)
  return finish(draft, undefined)
}

/** Applies the retention policy after the end of the environment's run. */
export function runEnded(
  state: EnvironmentState,
  { run_id, status }: Commands['environment.run_ended']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decided<'environment.run_ended'> {
  if (!state || state.record.run_id !== run_id) return { events: [], reply: undefined }
  const draft = newDraft(state, cause, settings)
  applyPolicy(draft, status === 'completed')
  advance(draft)
  return finish(draft, undefined)
}
