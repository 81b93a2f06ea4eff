/** The worker of an environment: requests to start it, its registration, and its end. */

import { timestamp } from '../../protocol/common.ts'
import type { EnvironmentCommands } from '../../protocol/environments/commands.ts'
import type { EnvironmentEvent } from '../../protocol/environments/events.ts'
import { KEEP_WARM_RULE, keepWarmMs } from '../../protocol/environments/keep-warm.ts'
import type { StartWorker, WorkerStarted } from '../../protocol/environments/schema.ts'
import { refuse, refuseFields } from '../../protocol/errors.ts'
import type { Cause, Decision } from '../actor.ts'
import { advance } from './advance.ts'
import { change, type Draft, type EnvironmentSettings, emit, finish, newDraft } from './draft.ts'
import { type EnvironmentState, isAttached, shownEnvironment } from './state.ts'
import { endWorker } from './transitions.ts'

type Commands = EnvironmentCommands
type Decided<N extends keyof Commands> = Decision<EnvironmentEvent, Commands[N]['reply']>

/**
 * Milliseconds for which no other worker may register while the registration of an attached worker
 * is pending.
 */
const CONNECTING_MS = 30_000
const unstartable: ReadonlySet<string> = new Set(['destroying', 'destroyed', 'failed', 'orphaned'])

/** Handles a client's request to start the worker. */
export function startWorker(
  state: EnvironmentState,
  input: StartWorker,
  cause: Cause,
  settings: EnvironmentSettings,
): Decision<EnvironmentEvent, WorkerStarted> {
  if (!state) return refuse('not_found', { resource: 'environment' })
  const { status } = state.record
  if (unstartable.has(status)) return refuse('environment_not_ready', { status })
  if (isAttached(state))
    return refuseFields({
      field: 'environment_id',
      message: 'names an environment whose worker the service does not start',
      actual: state.record.id,
    })
  const { keep_warm } = input
  if (keep_warm !== undefined && keepWarmMs(keep_warm) === undefined)
    return refuseFields({ field: 'keep_warm', message: KEEP_WARM_RULE, actual: keep_warm })
  const { session, launch } = state.worker
  const draft = newDraft(state, cause, settings)
  const isLive = state.worker.state === 'connected'
  if (!isLive)
    emit(draft, { type: 'environment.worker_requested', launch: { ...launch, ...input } })
  advance(draft)
  return finish(draft, {
    environment: shownEnvironment(draft.state),
    started: !isLive,
    ...(isLive && session !== undefined && { worker_session_id: session }),
  })
}

/** Decides whether a worker may register for the environment, and records that it is connecting. */
export function connect(
  state: EnvironmentState,
  { instance, generation }: Commands['environment.connect']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decided<'environment.connect'> {
  if (!state || state.record.status === 'destroyed')
    return refuse('not_found', { resource: 'environment' })
  const { worker } = state
  const isSame = worker.instance === instance
  if (generation !== undefined) {
    if (worker.state === 'stopped' || generation !== worker.generation)
      return refuse('forbidden', {}, 'This worker was superseded or has ended.')
    if (worker.state === 'connected' && !isSame) return refuse('environment_worker_conflict')
    if (isSame) return { events: [], reply: undefined }
  } else {
    if (!isAttached(state))
      return refuse('forbidden', {}, 'Only a host starts workers of this environment.')
    const isLive =
      worker.state === 'connected' ||
      (worker.state === 'starting' && cause.at < worker.since + CONNECTING_MS)
    if (isLive && !isSame) return refuse('environment_worker_conflict')
    if (isLive) return { events: [], reply: undefined }
  }
  const draft = newDraft(state, cause, settings)
  emit(draft, {
    type: 'environment.worker_connecting',
    instance,
    generation: generation ?? worker.generation + 1,
    at: cause.at,
  })
  return finish(draft, undefined)
}

/** Records that the worker has registered. */
export function connected(
  state: EnvironmentState,
  { instance, session, generation }: Commands['environment.connected']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decided<'environment.connected'> {
  const worker = state?.worker
  const isCurrent =
    worker?.instance === instance &&
    worker.state !== 'stopped' &&
    (generation === undefined || generation === worker.generation)
  if (!state || !isCurrent || worker.session === session) return { events: [], reply: undefined }
  const draft = newDraft(state, cause, settings)
  enter(draft, session)
  advance(draft)
  return finish(draft, undefined)
}
function enter(draft: Draft, session: string): void {
  const { at } = draft.cause
  emit(draft, { type: 'environment.worker_connected', session, at })
  change(draft, {
    current_worker_session_id: session,
    worker_state: 'connected',
    last_seen_at: timestamp(at),
    error: null,
    ...(draft.state.record.status === 'orphaned' && { status: 'ready' as const }),
  })
}

/** Records that the worker's session has ended permanently. */
export function workerGone(
  state: EnvironmentState,
  { session, drained }: Commands['environment.worker_gone']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decided<'environment.worker_gone'> {
  if (state?.worker.session !== session) return { events: [], reply: undefined }
  const draft = newDraft(state, cause, settings)
  endWorker(draft, drained ? 'stopped' : 'failed')
  if (isAttached(state) && state.record.status !== 'destroyed')
    change(draft, { status: 'orphaned' })
  advance(draft)
  return finish(draft, undefined)
}

/**
 * Attaches the workspace of a worker, for the first time or again. If another worker is connected,
 * nothing changes, and the gateway refuses the attachment.
 */
export function reattach(
  state: EnvironmentState,
  { session, instance, tags }: Commands['environment.reattach']['input'],
  cause: Cause,
  settings: EnvironmentSettings,
): Decided<'environment.reattach'> {
  if (!state || !isAttached(state)) return { events: [], reply: undefined }
  const { worker } = state
  if (worker.state === 'connected' && worker.session !== session && worker.instance !== instance)
    return { events: [], reply: undefined }
  const draft = newDraft(state, cause, settings)
  if (tags) change(draft, { tags })
  if (state.worker.session !== session) {
    endWorker(draft, 'stopped')
    emit(draft, {
      type: 'environment.worker_connecting',
      instance,
      generation: draft.state.worker.generation + 1,
      at: cause.at,
    })
    enter(draft, session)
  }
  advance(draft)
  return finish(draft, undefined)
}
