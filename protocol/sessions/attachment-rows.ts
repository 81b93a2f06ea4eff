/**
 * The rows for files of a session. An upload is `multipart/form-data`, or JSON with the bytes in
 * base64. The published contract leaves these points open, and this service decides them as
 * follows:
 * - Readers of the session may list and read its files.
 * - An upload is abandoned when its bytes have not arrived within ten minutes.
 * - Files are artifacts. They are `shared`, but only readers of the session, and the principal that
 *   uploaded the file, may read them.
 */
import { Type } from 'typebox'
import { Artifact } from '../artifacts/schema.ts'
import { Closed, pageOf, paging } from '../common.ts'
import { blob, command, query } from '../contract.ts'
import { Attached } from './attachments.ts'
import { limits } from './limits.ts'

const S = '/projects/:project/sessions/:session_id/attachments'
const tag = 'sessions'
const to = { kind: 'session', slot: 'session_id', prefix: 'agent_session' } as const
const act = { tag, permission: 'agent.invoke', to } as const
const read = { tag, permission: 'project.view', errors: ['not_found'] } as const

const Upload = Closed({
  file: Type.String({
    minLength: 1,
    contentEncoding: 'base64',
    description: 'Content of the file: a part of the form, or base64 in JSON',
  }),
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: limits.file.name,
      description: 'File name; the name of the form part by default',
    }),
  ),
  mime: Type.Optional(
    Type.String({
      maxLength: limits.file.name,
      description: 'Media type as a hint; the service determines the type from the content',
    }),
  ),
  size_bytes: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Expected size in bytes; the upload is refused if it differs',
    }),
  ),
})

export const attachments = {
  'session.attach': command(`POST ${S}`, {
    ...act,
    summary: 'Attach a file to a session; messages to the session can then contain it',
    keyScope: 'actor',
    upload: true,
    body: Upload,
    reply: Attached,
    status: 201,
    alsoStatus: [200],
    limit: limits.file.body,
    errors: ['not_found', 'conflict', 'artifact_quota_exceeded', 'artifact_storage_unavailable'],
  }),
  'session.attachments': query(`GET ${S}`, {
    ...read,
    summary: 'Files of a session, oldest first',
    answeredBy: 'gateway',
    reply: pageOf(Artifact),
    query: Closed({ ...paging }),
  }),
  'session.attachment': blob(`GET ${S}/:artifact_id/content`, {
    ...read,
    summary: 'Content of a file, or one range of it',
    reply: Type.String({ format: 'binary' }),
    alsoStatus: [206, 304],
    errors: [
      'not_found',
      'precondition_failed',
      'range_not_satisfiable',
      'artifact_storage_unavailable',
    ],
  }),
  'session.detach': command(`DELETE ${S}/:artifact_id`, {
    ...act,
    summary: 'Erase a file; messages that contain it then show that it was erased',
    status: 204,
    errors: ['not_found', 'conflict'],
  }),
} as const
