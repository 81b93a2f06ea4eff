/**
 * The artifact actor: one uploaded file, from its announcement to its deletion. Gateways store the
 * bytes. The actor decides which uploads are visible. The actor's effects erase bytes and update
 * the organization's storage quota, even if the gateway has stopped.
 *
 *     pending → ready → deleted
 *        ↓
 *     abandoned
 *
 * Invariants:
 * U1. An upload is visible only after `artifact.complete`, which is sent once all bytes are stored.
 *     The gateway sends it, with two exceptions: for an upload of a worker, the queue sends it, and
 *     only while the lease is current; for an attachment, the session sends it.
 * U2. When an upload ends in any other way, its bytes are erased, and the quota frees the reserved
 *     bytes. An upload that is neither completed nor renewed ends at its deadline.
 * U3. An id is used for at most one upload. An id that was abandoned before its upload began stays
 *     unusable.
 * U4. The session, not the artifact, ends the upload of an attachment at a deadline. The session
 *     and the artifact change in the same commit, so they agree on the state of the file.
 */

import { brandedPermission } from '../../protocol/access/schema.ts'
import type {
  ArtifactCommands,
  ArtifactReservation,
  ArtifactState,
} from '../../protocol/artifacts/commands.ts'
import type { ArtifactEvent } from '../../protocol/artifacts/events.ts'
import type { artifacts } from '../../protocol/artifacts/rows.ts'
import { type ArtifactRecord, limits } from '../../protocol/artifacts/schema.ts'
import type { Viewer } from '../../protocol/channels/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import type { Address } from '../../protocol/entry.ts'
import type { Errand } from '../../protocol/errand.ts'
import { refuse } from '../../protocol/errors.ts'
import { patch } from '../../protocol/patch.ts'
import { objectNames } from '../../protocol/sessions/attachments.ts'
import type { Actor, Cause, Decision, Effect, Tell } from '../actor.ts'
import {
  beginConversion,
  conversionResult,
  settleConversion,
  TIMED_OUT_CONVERSION,
} from './conversion.ts'
import { postArtifact, withPost } from './posts.ts'
import { toSession } from './session.ts'
import { artifactSourceEvent } from './source-event.ts'

type State = ArtifactState | null
type Reserved = Exclude<ArtifactState, { readonly state: 'abandoned' }>
type Internal = ArtifactCommands
type Rows = Pick<typeof artifacts, 'artifact.delete'>
/** Data that the gateway adds to the input of `artifact.delete`: the caller. */
type Extra = { 'artifact.delete': { readonly viewer: Viewer } }
type Completed = Extract<ArtifactEvent, { readonly type: 'artifact.completed' }>
type Decided<N extends keyof Internal> = Decision<ArtifactEvent, Internal[N]['reply']>

const isPending = (state: State): state is Reserved & { readonly state: 'pending' } =>
  state?.state === 'pending'
/**
 * Whether the upload is pending and the artifact itself ends it at a deadline. The upload of an
 * attachment is ended by its session instead.
 */
const isTimed = (state: State): state is Reserved & { readonly state: 'pending' } =>
  isPending(state) && !state.attachment
const isConverting = (state: State): state is Reserved & { readonly state: 'ready' } =>
  state?.state === 'ready' && state.artifact.conversion?.state === 'converting'

function pendingRecord(
  id: string,
  { size_bytes = 0, owner, lease, attachment }: ArtifactReservation,
  cause: Cause,
): ArtifactRecord {
  return {
    id,
    visibility: lease || attachment ? 'shared' : 'private',
    name: '',
    mime_type: 'application/octet-stream',
    size_bytes,
    ...(lease?.run_id !== undefined && { run_id: lease.run_id }),
    ...(lease?.step_id !== undefined && { step_id: lease.step_id }),
    created_at: timestamp(cause.at),
    created_by: cause.principal.id,
    owned_by: owner,
    ...(lease && {
      job_id: lease.job_id,
      worker_session_id: lease.worker_session_id,
      attempt: lease.attempt,
    }),
  }
}

function reserve(
  state: State,
  input: ArtifactReservation,
  cause: Cause,
  uploadMs: number,
): Decided<'artifact.reserve'> {
  if (state) return refuse('artifact_conflict')
  const { organization, blob, lease, attachment } = input
  const session_id = attachment?.session_id ?? lease?.session_id
  const until = attachment?.until ?? cause.at + uploadMs
  return {
    events: [
      {
        type: 'artifact.reserved',
        kept: {
          state: 'pending',
          artifact: pendingRecord(cause.self.id, input, cause),
          organization,
          blob,
          ...(lease?.step_key !== undefined && { step: lease.step_key }),
          ...(session_id !== undefined && { session_id }),
          ...(attachment && { attachment: true }),
          until,
        },
      },
    ],
    reply: { expires_at: until },
  }
}

function renew(state: State, { at }: Cause, uploadMs: number): Decided<'artifact.renew'> {
  if (!isTimed(state)) return refuse('artifact_conflict')
  const until = Math.max(state.until ?? 0, at + uploadMs)
  return { events: [{ type: 'artifact.renewed', until }], reply: { expires_at: until } }
}

const isSameSource = (
  { artifact: { job_id, attempt }, attachment: attached }: Reserved,
  { lease, attachment }: Internal['artifact.complete']['input'],
): boolean =>
  job_id === lease?.job_id &&
  attempt === lease?.attempt &&
  (attached === true) === (attachment !== undefined)

function complete(
  state: State,
  input: Internal['artifact.complete']['input'],
  cause: Cause,
): Decided<'artifact.complete'> {
  const { lease: _, attachment, convert, ...facts } = input
  if (state?.state === 'ready' && state.artifact.sha256 === facts.sha256)
    return { events: [], reply: state.artifact }
  if (!isPending(state) || !isSameSource(state, input)) return refuse('artifact_conflict')
  const begun =
    convert === true ? beginConversion(facts, state.artifact.owned_by ?? '', cause) : undefined
  // The list is ordered by `created_at`. A new artifact must appear at the head of the list, so its
  // `created_at` is the time of completion.
  const artifact: ArtifactRecord = {
    ...state.artifact,
    ...facts,
    ...(begun && { conversion: begun.conversion }),
    created_at: timestamp(cause.at),
  }
  const { step, session_id, organization } = state
  const completed: Completed = {
    type: 'artifact.completed',
    id: artifact.id,
    artifact,
    organization,
    ...(step !== undefined && { step }),
    ...(session_id !== undefined && { session_id }),
    ...(attachment && { attachment: true }),
    ...(begun?.job && {
      convert_until: cause.at + limits.conversion,
      convert_job: begun.job.job_id,
    }),
  }
  const told = session_id === undefined ? toRun(completed) : undefined
  const tells = [...(told ? [told] : []), ...(begun?.job ? [begun.job.tell] : [])]
  return { events: [completed], ...(tells.length > 0 && { tells }), reply: artifact }
}
/**
 * Returns the message that informs the run of a new artifact, or undefined if the artifact belongs
 * to no run. The artifact of a run's own job is in the shard of the run, so `complete` sends the
 * message as a tell. The artifact of a session's job may be in another shard, so the message is
 * sent as an effect.
 */
const toRun = ({ artifact, step, session_id }: Completed): Tell | undefined =>
  artifact.run_id === undefined
    ? undefined
    : {
        to: { kind: 'run', id: artifact.run_id },
        name: 'run.artifact',
        input: {
          artifact,
          ...(step !== undefined && { step }),
          ...(session_id !== undefined && { session_id }),
        },
      }
/**
 * Returns the effects of a completed upload. The quota counts the reserved bytes as used. An
 * artifact that belongs to no run is published. If the artifact belongs to a run, the run is
 * informed, unless a tell from `complete` has already informed it.
 */
function sayCompleted(event: Completed, { project }: Address): Effect[] {
  const { id, artifact, organization, session_id, attachment } = event
  const settle = toQuota(organization, 'quota.settle', { artifact: id, bytes: artifact.size_bytes })
  const told = toRun(event)
  if (told) return session_id === undefined ? [settle] : [settle, { tell: told }]
  return [
    settle,
    { tell: artifactSourceEvent(project, artifact, { depth: 0, session_id, attachment }) },
  ]
}

const abandoned = (id: string, { organization, blob, until = 0 }: Reserved): ArtifactEvent => ({
  type: 'artifact.abandoned',
  id,
  upload: { organization, blob, until },
})
function abandon(
  state: State,
  { unreserved }: Internal['artifact.abandon']['input'],
  { self: { id } }: Cause,
): Decided<'artifact.abandon'> {
  if (!state) return { events: [{ type: 'artifact.abandoned', id }], reply: { state: 'abandoned' } }
  return isTimed(state) && !unreserved
    ? { events: [abandoned(id, state)], reply: { state: 'abandoned' } }
    : { events: [], reply: { state: state.state } }
}

function remove(
  brand: string,
  state: State,
  { viewer }: Input<Rows['artifact.delete']> & Extra['artifact.delete'],
  { at, self: { id } }: Cause,
): Decision<ArtifactEvent, undefined> {
  const missing = refuse('not_found', { resource: 'artifact' })
  if (isPending(state) && state.attachment && mayDelete(state, viewer))
    return refuse(
      'conflict',
      { artifact_id: id },
      'The file is still being uploaded to its session.',
    )
  if (state?.state !== 'ready') return missing
  const { artifact } = state
  if (!mayDelete(state, viewer))
    return artifact.visibility === 'private'
      ? missing
      : refuse('permission_denied', { permission: brandedPermission('project.admin', brand) })
  if (isConverting(state))
    return refuse('conflict', { artifact_id: id }, 'The artifact is being converted.')
  const tells = toSession(state, 'attachment.removed', { artifact_id: id })
  return { events: [deleted(id, state, at)], tells, reply: undefined }
}
const mayDelete = ({ artifact }: Reserved, viewer: Viewer): boolean =>
  artifact.owned_by === viewer.id || viewer.admin
const deleted = (
  id: string,
  { artifact: { name, size_bytes }, organization, blob, session_id }: Reserved,
  at: number,
): ArtifactEvent => ({
  type: 'artifact.deleted',
  id,
  name,
  size_bytes,
  organization,
  blob,
  until: at + limits.refund,
  ...(session_id !== undefined && { session_id }),
})
/**
 * Deletes the artifact or, if the upload is pending, abandons the upload. The service requests this
 * when the project was deleted, or when the session deleted the attachment or abandoned its upload.
 */
function removeByService(
  state: State,
  _: unknown,
  { at, self: { id } }: Cause,
): Decided<'artifact.remove'> {
  const events = isPending(state)
    ? [abandoned(id, state)]
    : state?.state === 'ready'
      ? [deleted(id, state, at)]
      : []
  return { events, reply: undefined }
}

function wake(state: State, _: unknown, cause: Cause): Decided<'wake'> {
  const due = state && state.state !== 'abandoned' && (state.until ?? Infinity) <= cause.at
  if (due && isConverting(state)) return settleConversion(state, TIMED_OUT_CONVERSION, cause)
  const events = due && isTimed(state) ? [abandoned(cause.self.id, state)] : []
  return { events, reply: undefined }
}

function reserved(state: State): Reserved {
  if (!state || state.state === 'abandoned')
    throw new Error('an artifact changed before it was reserved')
  return state
}

const erase = (blob: string): Effect => ({ erase: objectNames(blob) })
const toQuota = (
  organization: string,
  name: 'quota.settle' | 'quota.release' | 'quota.refund',
  input: unknown,
): Effect => ({
  tell: { to: { kind: 'organization', id: organization, project: organization }, name, input },
})

/**
 * Creates the artifact actor.
 * @param options the brand, which is part of the names of permissions, and the time in milliseconds
 * after which an upload that is not renewed is abandoned.
 */
export const artifactActor = ({
  brand,
  artifacts: { upload_ms = limits.upload } = {},
}: {
  readonly brand: string
  readonly artifacts?: { readonly upload_ms?: number }
}): Actor<State, ArtifactEvent, Rows, 'artifact', Internal, Extra> => ({
  kind: 'artifact',
  initial: () => null,
  decide: {
    'artifact.reserve': (state, input, cause) => reserve(state, input, cause, upload_ms),
    'artifact.renew': (state, _, cause) => renew(state, cause, upload_ms),
    'artifact.complete': complete,
    'artifact.abandon': abandon,
    'job.settled': (state, input, cause) =>
      isConverting(state) && state.convert_job === input.job_id
        ? settleConversion(state, conversionResult(input), cause)
        : { events: [], reply: undefined },
    'artifact.delete': (state, input, cause) => remove(brand.toLowerCase(), state, input, cause),
    'artifact.remove': removeByService,
    'artifact.post': postArtifact,
    wake,
  },
  evolve: {
    'artifact.reserved': (_, { kept }) => kept,
    'artifact.renewed': (state, { until }) => ({ ...reserved(state), until }),
    'artifact.completed': (state, { artifact, convert_until, convert_job }) => {
      const { until: _, ...rest } = reserved(state)
      return {
        ...rest,
        state: 'ready',
        artifact,
        ...(convert_until !== undefined && { until: convert_until }),
        ...(convert_job !== undefined && { convert_job }),
      }
    },
    'artifact.converted': (state, { artifact }) => {
      const { until: _, convert_job: __, ...rest } = reserved(state)
      return { ...rest, artifact: patch(rest.artifact, artifact) }
    },
    'artifact.abandoned': () => ({ state: 'abandoned' }),
    'artifact.posted': (state, { post }) => withPost(reserved(state), post),
    'artifact.deleted': (state, { until }) => ({ ...reserved(state), state: 'deleted', until }),
  },
  react: {
    'artifact.completed': sayCompleted,
    'artifact.abandoned': ({ id: artifact, upload }) =>
      upload
        ? [
            erase(upload.blob),
            toQuota(upload.organization, 'quota.release', { artifact, until: upload.until }),
          ]
        : [],
    'artifact.deleted': ({ id: artifact, blob, organization, size_bytes: bytes, until }) => [
      erase(blob),
      toQuota(organization, 'quota.refund', { artifact, bytes, until }),
    ],
  },
  ask: {
    /** The artifact in any state, or null if its id was never used. */
    content: (state) => state,
    /** The errand of a conversion job, for its executor. */
    job_spec: (state, { job_id }: { readonly job_id: string }): Errand =>
      isConverting(state) && state.convert_job === job_id
        ? { errand: 'convert', artifact_id: state.artifact.id, blob: state.blob }
        : { errand: 'none' },
  },
  deadline: (state) => (isTimed(state) || isConverting(state) ? state.until : undefined),
  ended: (state) => state !== null && !isPending(state) && !isConverting(state),
})
