/**
 * Internal commands of artifacts, of idempotency keys of uploads, and of the storage quota.
 *
 * The steps of an upload without a lease: `artifact_key.claim` (only with an idempotency key),
 * `artifact.reserve`, `quota.reserve`, storing the bytes, `artifact.complete`, `quota.settle`. An
 * upload with a lease token first reads the lease from the queue (owner query `lease`), and uses
 * `job.publish_artifact` instead of `artifact.complete`. After a failure, the gateway sends
 * `artifact.abandon`, deletes the bytes, and sends `quota.release`. If the gateway crashes, the
 * artifact abandons the upload at its deadline. The effects of the artifact repeat the steps that
 * the gateway could not complete.
 *
 * For an attachment, the session reserves, completes and removes the artifact, each in the commit
 * that changes the session's own record of the file (`sessions/commands.ts`). The gateway sends
 * only the commands about the quota.
 */
import type { RunCommands } from '../internal.ts'
import type { Artifact, ArtifactRecord } from './schema.ts'

/** The lease under which an upload was started, as the queue reports it. */
export interface LeaseFacts {
  readonly job_id: string
  readonly attempt: number
  /** Id of the worker session that holds the lease. */
  readonly worker_session_id: string
  readonly worker_instance_id: string
  readonly run_id?: string
  readonly step_id?: string
  readonly step_key?: string
  readonly session_id?: string
  readonly agent_turn_id?: string
}
/**
 * The data of an artifact that is known only after the bytes are stored and the whole form has been
 * received. The parts of a form can arrive in any order, so even the name can arrive after the
 * bytes.
 */
export interface CompleteUpload extends Pick<Artifact, 'name' | 'mime_type' | 'metadata'> {
  readonly size_bytes: number
  /** Lower-case hex. */
  readonly sha256: string
  /** Requests a conversion: the extraction of the file's text as Markdown. */
  readonly convert?: true
}
/** An announced upload. */
export interface ArtifactReservation {
  /** Id of the organization, whose quota the artifact uses. */
  readonly organization: string
  /** Name of the bytes in the object store (`blobName`). */
  readonly blob: string
  /** Id of the owning principal. */
  readonly owner: string
  /** The declared size, absent when it is unknown. */
  readonly size_bytes?: number
  /** Present for an upload by a worker. The id of the artifact then has the slot of the job. */
  readonly lease?: LeaseFacts
  /**
   * Present for an attachment, which only its session reserves. The id of the artifact then has the
   * slot of the session. `until`: Unix milliseconds at which the session abandons the upload.
   */
  readonly attachment?: { readonly session_id: string; readonly until: number }
}

/** A message of a channel that shares a private artifact. */
export interface ArtifactPost {
  readonly channel_id: string
  readonly message_id: string
}
/** Maximum number of stored messages per artifact. Only the newest ones share it. */
export const MAX_ARTIFACT_POSTS = 20

/** An artifact as its actor stores it. */
export type ArtifactState =
  /** The upload was abandoned, or the id was made unusable. */
  | { readonly state: 'abandoned' }
  | {
      readonly state: 'pending' | 'ready' | 'deleted'
      /** While the artifact is pending, its name, type and digest are not known yet. */
      readonly artifact: ArtifactRecord
      readonly organization: string
      readonly blob: string
      /** Key of the step that produced the artifact. */
      readonly step?: string
      /**
       * Id of the session whose job produced the artifact, or to which it is attached. Apart from
       * the owner, only principals that may read the session may read the artifact.
       */
      readonly session_id?: string
      /** The artifact is an attachment: only its session completes or abandons the upload. */
      readonly attachment?: true
      /**
       * Unix milliseconds: the deadline of a pending upload or of a conversion. For a deleted
       * artifact, the time until which a direct `quota.refund` is accepted.
       */
      readonly until?: number
      /** Id of the errand that converts the file; absent when no conversion was requested. */
      readonly convert_job?: string
      /**
       * Messages in which the owner posted the private artifact. Readers of such a message may read
       * the artifact while the message names it.
       */
      readonly posts?: readonly ArtifactPost[]
    }

/**
 * The outcome of the errand that converts a file. `error`: a message that states what the user can
 * do.
 */
export type ConversionResult =
  | { readonly state: 'ready' }
  | { readonly state: 'failed'; readonly error: string }

/** Internal commands of an artifact. */
export type ArtifactCommands = {
  /**
   * Announces an upload. Bytes may then be stored under `blob`. `expires_at`: the deadline in Unix
   * milliseconds. Refused with `artifact_conflict` if the id was used before.
   */
  'artifact.reserve': { input: ArtifactReservation; reply: { expires_at: number } }
  /**
   * Extends the deadline of an upload in progress. The gateway sends the command each time a third
   * of the upload timeout has passed. Refused with `artifact_conflict` when the upload is not
   * pending, and for attachments.
   */
  'artifact.renew': { input: Readonly<Record<never, never>>; reply: { expires_at: number } }
  /**
   * Makes the artifact visible. `lease` is required for an upload by a worker, and only the queue
   * sends it. `attachment` is required for an attachment, and only the session sends it. A repeat
   * with the same digest gets the record. Refused with `artifact_conflict` when the upload is not
   * pending or belongs to another lease. An attachment is also refused unless its session sent the
   * command.
   */
  'artifact.complete': {
    input: CompleteUpload & {
      readonly lease?: Pick<LeaseFacts, 'job_id' | 'attempt'>
      readonly attachment?: true
    }
    reply: ArtifactRecord
  }
  /**
   * Abandons a pending upload. An id that was never reserved becomes unusable. Attachments, and
   * ready or deleted artifacts, are not changed. With `unreserved`, the command changes nothing
   * unless the id was never reserved. The reply is the state after the command.
   */
  'artifact.abandon': {
    input: { readonly unreserved?: true }
    reply: { readonly state: ArtifactState['state'] }
  }
  /**
   * Deletes the artifact, or abandons its upload. An executor sends the command after the project
   * has been deleted. The session of an attachment sends the command after the file has been
   * deleted or its upload abandoned.
   */
  'artifact.remove': { input: Readonly<Record<never, never>>; reply: undefined }
  /**
   * Reports that a message names the artifact in its metadata. Sent by the channel of the message.
   * `principal_id`: the principal that wrote the metadata. Changes nothing unless this principal
   * owns the artifact, and the artifact is ready and private.
   */
  'artifact.post': {
    input: ArtifactPost & { readonly principal_id: string }
    reply: undefined
  }
  /**
   * Sent by the queue when the errand that converts the file has ended. The result of a completed
   * errand is a `ConversionResult`. Changes nothing unless the artifact waits for this errand.
   */
  'job.settled': RunCommands['job.settled']
  wake: { input: unknown; reply: undefined }
}

/** Commands of a queue about artifacts that workers upload under the lease of a job. */
export type ArtifactQueueCommands = {
  /**
   * Publishes an artifact: it becomes visible and, if a step of a run produced it, the run records
   * it in the same commit. `lease_lost`: the lease is not current, and nothing changes.
   * `published`: the lease is current, but the artifact may still refuse the upload.
   */
  'job.publish_artifact': {
    input: CompleteUpload & {
      readonly lease_token: string
      readonly job_id: string
      readonly artifact_id: string
    }
    reply: { readonly outcome: 'published' | 'lease_lost' }
  }
}
/** Commands of a run about its artifacts. */
export type ArtifactRunCommands = {
  /**
   * Reports that the upload of an artifact of this run has completed. Sent once by the artifact.
   */
  'run.artifact': {
    input: {
      readonly artifact: ArtifactRecord
      readonly step?: string
      readonly session_id?: string
    }
    reply: undefined
  }
}

/** Commands of the actor that stores the idempotency key of an upload. The key never expires. */
export type ArtifactKeyCommands = {
  /**
   * Binds the key to an artifact id, unless the key is already bound. The reply contains the bound
   * id. `replaces`: the bound id, if the caller found that the upload of this artifact was
   * abandoned. The key is then bound to `artifact_id` instead.
   */
  'artifact_key.claim': {
    input: { readonly artifact_id: string; readonly replaces?: string }
    reply: { readonly artifact_id: string }
  }
}

/**
 * Commands of the organization about the storage of artifacts. The gateway sends each of them
 * directly, so that the next read of the quota shows the change. The artifact also sends `settle`,
 * `release` and `refund` as effects, in case the gateway crashes. Each command takes effect only
 * once, even if it is repeated, and the commands may arrive in any order.
 */
export type QuotaCommands = {
  /**
   * Reserves bytes for an upload and replaces an earlier reservation for the same artifact. Refused
   * with `artifact_quota_exceeded` when used and reserved bytes would exceed the limit, and with
   * `artifact_conflict` when the upload has ended. `expires_at`: the deadline of the upload.
   */
  'quota.reserve': {
    input: { readonly artifact: string; readonly bytes: number; readonly expires_at: number }
    reply: undefined
  }
  /** Converts the reserved bytes of a complete upload to used bytes. */
  'quota.settle': { input: { readonly artifact: string; readonly bytes: number }; reply: undefined }
  /**
   * Frees the reserved bytes of an abandoned upload. A reservation that arrives later is refused.
   * `until`: the last deadline of the upload, in Unix milliseconds.
   */
  'quota.release': {
    input: { readonly artifact: string; readonly until: number }
    reply: undefined
  }
  /**
   * Frees the bytes of a deleted artifact. `direct`: sent by a gateway, not by the artifact. A
   * direct refund is ignored after `until` (Unix milliseconds), because the organization may no
   * longer remember the refund from the artifact.
   */
  'quota.refund': {
    input: {
      readonly artifact: string
      readonly bytes: number
      readonly until: number
      readonly direct?: true
    }
    reply: undefined
  }
}

/** Returns the name of the object that contains the bytes of an upload attempt. */
export const blobName = (project: string, artifact_id: string, attempt: string): string =>
  `artifacts/${project}/${artifact_id}/${attempt}`
