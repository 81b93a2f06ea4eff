/**
 * The rows of artifacts. The published contract leaves these points open, and this service decides
 * them as follows:
 * - The owner of an artifact and administrators of the project may delete it.
 * - The gateway checks the permission of an upload: `work.execute` with a lease token, otherwise
 *   `project.edit`.
 */
import { Type } from 'typebox'
import { Closed, pageOf, paging } from '../common.ts'
import { blob, command, query } from '../contract.ts'
import { Artifact, ArtifactQuota, ArtifactRecord, limits, SignedUrl } from './schema.ts'

const P = '/projects/:project/artifacts'
const one = `${P}/:artifact_id`
const tag = 'artifacts'
const read = { tag, permission: 'project.view' } as const

const Upload = Closed({
  file: Type.String({ contentEncoding: 'binary', description: 'Content of the file' }),
  name: Type.String({ minLength: 1, maxLength: limits.name }),
  mime: Type.Optional(
    Type.String({
      maxLength: limits.name,
      description: 'Media type; the type of the form part by default',
    }),
  ),
  size_bytes: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Expected size in bytes; the upload is refused if it differs',
    }),
  ),
  metadata: Type.Optional(Type.String({ description: 'JSON object as text, at most 64 KiB' })),
  convert: Type.Optional(
    Type.Enum(['true', 'false'], { description: 'Whether to extract the text of an Office file' }),
  ),
})
const storage = 'artifact_storage_unavailable'
const quotaShape = {
  ...read,
  summary: 'Storage that artifacts of the organization use',
  answeredBy: 'gateway',
  reply: ArtifactQuota,
} as const

export const artifacts = {
  'artifact.create': blob(`POST ${P}`, {
    tag,
    permission: 'authenticated',
    environment: true,
    summary: 'Upload an artifact; a worker authenticates with its lease token',
    body: Upload,
    upload: 'streamed',
    reply: Artifact,
    status: 201,
    alsoStatus: [200],
    errors: [
      'unsupported_media_type',
      'artifact_conflict',
      'lease_lost',
      'artifact_quota_exceeded',
      'payload_too_large',
      storage,
    ],
  }),
  'artifact.list': query(`GET ${P}`, {
    ...read,
    summary: 'Artifacts that the caller may read, newest first',
    viewer: true,
    query: Closed({
      run_id: Type.Optional(Type.String()),
      step_id: Type.Optional(Type.String()),
      mime: Type.Optional(
        Type.String({
          maxLength: limits.name,
          description: 'Media type or a prefix of it, such as image/',
        }),
      ),
      ...paging,
    }),
    reply: pageOf(ArtifactRecord),
  }),
  'artifact.quota': query(`GET ${P}/quota`, quotaShape),
  // The path that existing clients use.
  'artifact.quota_settings': query('GET /projects/:project/settings/artifact-storage/quota', {
    ...quotaShape,
    tag: 'compat',
    alias: 'artifact.quota',
    as: 'artifact.quota',
  }),
  'artifact.get': query(`GET ${one}`, {
    ...read,
    environment: true,
    summary: 'One artifact',
    answeredBy: 'gateway',
    reply: ArtifactRecord,
    errors: ['not_found'],
  }),
  'artifact.content': blob(`GET ${one}/content`, {
    ...read,
    environment: true,
    summary: 'Content of an artifact, or one range of it',
    query: Closed({
      download: Type.Optional(
        Type.Boolean({
          description: 'Whether browsers must save the file instead of displaying it',
        }),
      ),
    }),
    reply: Type.String({ format: 'binary' }),
    alsoStatus: [206, 304],
    errors: ['not_found', 'conflict', 'precondition_failed', 'range_not_satisfiable', storage],
  }),
  'artifact.signed_url': query(`POST ${one}/signed-url`, {
    ...read,
    summary: 'Create a short-lived URL that reads the content without a credential',
    body: Closed({
      ttl_seconds: Type.Optional(
        Type.Integer({
          minimum: 1,
          description: 'Lifetime of the URL in seconds; 900 by default, at most 3600',
        }),
      ),
    }),
    bodyOptional: true,
    answeredBy: 'gateway',
    reply: SignedUrl,
    errors: ['not_found', 'conflict'],
  }),
  'artifact.delete': command(`DELETE ${one}`, {
    ...read,
    summary: 'Delete an artifact and its content',
    to: { kind: 'artifact', slot: 'artifact_id', prefix: 'artifact' },
    status: 204,
    errors: ['not_found', 'conflict'],
  }),
} as const
