/**
 * The records of artifacts: files of a project that workers and clients upload. The bytes are in
 * the object store under a name that the gateway assigns. The actor of an artifact decides whether
 * its upload is visible. Attachments of sessions are artifacts too (`sessions/attachments.ts`).
 */
import { type Static, Type } from 'typebox'
import { JsonObject, Timestamp } from '../common.ts'

/**
 * Limits of artifacts. Lengths are in characters and times in milliseconds unless stated otherwise.
 */
export const limits = {
  name: 256,
  /** Maximum size in bytes of the metadata as JSON. */
  metadata: 65_536,
  /** The default time after which an upload is abandoned unless the gateway renews it. */
  upload: 90_000,
  /** The time after which an unfinished conversion fails. */
  conversion: 60 * 60_000,
  /** Maximum size in bytes of a file that is converted. */
  conversion_bytes: 32 * 1_048_576,
  /** The number of lost executors after which a conversion fails. */
  conversion_losses: 3,
  /**
   * Time after a deletion for which the organization accepts a refund from a gateway
   * (`quota.refund`).
   */
  refund: 10 * 60_000,
  /** The default and the maximum validity of a signed URL, in seconds. */
  signed: { standard: 900, most: 3600 },
} as const

/** The state of the extraction of a file's text. */
export const Conversion = Type.Object(
  {
    state: Type.Enum(['converting', 'ready', 'failed']),
    error: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
)
/** A file as clients see it. */
export const Artifact = Type.Object(
  {
    id: Type.String(),
    visibility: Type.Enum(['private', 'shared']),
    name: Type.String(),
    mime_type: Type.String({ description: 'Media type without parameters' }),
    size_bytes: Type.Integer({ minimum: 0 }),
    run_id: Type.Optional(Type.String()),
    step_id: Type.Optional(Type.String()),
    sha256: Type.Optional(Type.String({ description: 'SHA-256 of the content in hex' })),
    created_by: Type.Optional(Type.String()),
    updated_by: Type.Optional(Type.String()),
    metadata: Type.Optional(JsonObject),
    conversion: Type.Optional(Conversion),
    created_at: Timestamp,
    updated_at: Type.Optional(Timestamp),
  },
  { additionalProperties: false },
)
export type Artifact = Static<typeof Artifact>

/** Fields that the reply to an upload omits, because clients decode that reply strictly. */
const further = {
  owned_by: Type.Optional(
    Type.String({ description: 'Id of the principal that owns the artifact' }),
  ),
  job_id: Type.Optional(Type.String()),
  worker_session_id: Type.Optional(Type.String()),
  attempt: Type.Optional(Type.Integer({ minimum: 1 })),
}
/** An artifact as returned by lists and single reads, with its owner and upload lease. */
export const ArtifactRecord = Type.Object(
  { ...Artifact.properties, ...further },
  { additionalProperties: false },
)
export type ArtifactRecord = Static<typeof ArtifactRecord>
/** Returns the part of the record that the reply to an upload contains. */
export const publishedArtifact = ({
  owned_by: _owner,
  job_id: _job,
  worker_session_id: _session,
  attempt: _attempt,
  ...artifact
}: ArtifactRecord): Artifact => artifact

/** The storage that the artifacts of the organization use. */
export const ArtifactQuota = Type.Object({
  used_bytes: Type.Integer({ minimum: 0 }),
  limit_bytes: Type.Integer({
    minimum: 0,
    description: 'Storage quota in bytes; 9007199254740991: no limit',
  }),
  artifact_count: Type.Integer({ minimum: 0 }),
  pending_count: Type.Integer({
    minimum: 0,
    description: 'Number of uploads that have not finished',
  }),
  generated_at: Timestamp,
})
export type ArtifactQuota = Static<typeof ArtifactQuota>

export const SignedUrl = Type.Object({
  url: Type.String(),
  method: Type.Literal('GET'),
  expires_at: Timestamp,
})
export type SignedUrl = Static<typeof SignedUrl>
