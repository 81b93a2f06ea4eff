/** Events of artifacts, of idempotency keys of uploads, and of the storage quota. */
import type { Event } from '../entry.ts'
import type { Patch } from '../patch.ts'
import type { ArtifactPost, ArtifactState } from './commands.ts'
import type { ArtifactRecord } from './schema.ts'

type Reserved = Exclude<ArtifactState, { readonly state: 'abandoned' }>

/** Events of an artifact; `id` is the id of the artifact. */
export type ArtifactEvent = ArtifactAuditEvent | ArtifactUploadEvent
/** Events that views apply. The audit log shows `artifact.completed` and `artifact.deleted`. */
export type ArtifactAuditEvent =
  | (Event & {
      readonly type: 'artifact.completed'
      readonly id: string
      readonly artifact: ArtifactRecord
      readonly organization: string
      readonly step?: string
      readonly session_id?: string
      /** The artifact is an attachment of the session. */
      readonly attachment?: true
      /** Unix milliseconds at which an unfinished conversion fails. */
      readonly convert_until?: number
      /** Id of the errand that converts the file. */
      readonly convert_job?: string
    })
  | (Event & {
      readonly type: 'artifact.converted'
      readonly id: string
      readonly artifact: Patch<ArtifactRecord>
    })
  | (Event & {
      readonly type: 'artifact.deleted'
      readonly id: string
      readonly name: string
      readonly size_bytes: number
      readonly organization: string
      readonly blob: string
      readonly until: number
      /** Id of the session whose readers may read the artifact; absent in older events. */
      readonly session_id?: string
    })
type ArtifactUploadEvent =
  | (Event & { readonly type: 'artifact.reserved'; readonly kept: Reserved })
  | (Event & { readonly type: 'artifact.renewed'; readonly until: number })
  /** A message shares the artifact with its readers. */
  | (Event & { readonly type: 'artifact.posted'; readonly post: ArtifactPost })
  | (Event & {
      readonly type: 'artifact.abandoned'
      readonly id: string
      /** The abandoned upload; absent for an id that was never reserved. */
      readonly upload?: Pick<Reserved, 'organization' | 'blob'> & { readonly until: number }
    })

export type ArtifactKeyEvent = Event & {
  readonly type: 'artifact_key.claimed'
  readonly artifact_id: string
}

/**
 * Private events of a deleted project about the `remove_artifacts` errand. `job_id` is the id of
 * the errand.
 */
export type ArtifactRemovalEvent = Event & {
  readonly type: 'artifact_removal.begun' | 'artifact_removal.ended'
  readonly job_id: string
}

/** Private events of the organization about the storage of artifacts. */
export type QuotaEvent =
  | (Event & {
      readonly type: 'quota.reserved'
      readonly artifact: string
      readonly bytes: number
      readonly expires_at: number
    })
  | (Event & { readonly type: 'quota.settled'; readonly artifact: string; readonly bytes: number })
  | (Event & { readonly type: 'quota.released'; readonly artifact: string; readonly until: number })
  | (Event & {
      readonly type: 'quota.refunded'
      readonly artifact: string
      readonly bytes: number
      readonly until: number
      readonly direct?: true
    })
