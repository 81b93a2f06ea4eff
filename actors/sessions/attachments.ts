/**
 * Files of a session. An upload is announced before its bytes are stored, so the state contains
 * every object that may be in the store. Each file is an artifact of the session's shard, which
 * changes in the same commit. The session reserves and completes the artifact, and removes it when
 * an upload is abandoned, a file is deleted, or the session ends. Files of earlier releases have no
 * artifact actor. They stay usable, and an effect of the session erases their bytes.
 *
 * Invariants:
 * F1. The bytes of an acknowledged file were stored before the acknowledgement. The file stays
 *     `stored` until it is deleted or the session ends.
 * F2. When an upload is abandoned, or a file is deleted, an effect erases the bytes.
 * F3. If a file has an artifact actor (`counted`), its artifact is pending while the file is
 *     `coming`, ready while the file is `stored`, and deleted once the file is `erased`. Only the
 *     deletion of the project can break this correspondence.
 */
import type { Api } from '../../protocol/api.ts'
import type { ArtifactCommands } from '../../protocol/artifacts/commands.ts'
import type { Artifact } from '../../protocol/artifacts/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import {
  type Attached,
  type AttachmentEvent,
  blockOf,
  fileName,
  type SessionFile,
} from '../../protocol/sessions/attachments.ts'
import type { Attaching, SessionCommands } from '../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../protocol/sessions/events.ts'
import { limits } from '../../protocol/sessions/limits.ts'
import type { Cause, Decision, Tell } from '../actor.ts'
import { type Draft, emit, emptyDecision, liveSession } from './draft.ts'
import { filesOf } from './files.ts'
import type { SessionState } from './state.ts'

const attachedOf = (file: SessionFile): Attached => ({
  artifact: file.artifact,
  content_block: blockOf(file),
})

const tellArtifact = <N extends 'artifact.reserve' | 'artifact.complete' | 'artifact.remove'>(
  id: string,
  name: N,
  input: ArtifactCommands[N]['input'],
): Tell => ({ to: { kind: 'artifact', id }, name, input })

/**
 * Announces a file, after which its bytes may be stored. A repeat with the same key and upload
 * refers to the same file. Refuses the key of another upload or of a deleted file.
 */
export function reserve(
  state: SessionState,
  { file, hash, key, organization }: SessionCommands['attachment.reserve']['input'],
  cause: Cause,
): Decision<SessionEvent, SessionCommands['attachment.reserve']['reply']> {
  const session = liveSession(state, cause)
  if (!session) return refuse('not_found')
  const files = Object.values(filesOf(session))
  const known = key === undefined ? undefined : files.find((one) => one.key === key)
  if (known) {
    if (known.hash !== hash)
      return refuse(
        'conflict',
        { field: 'Idempotency-Key', artifact_id: known.artifact.id },
        'This idempotency key was used for another file.',
      )
    if (known.state === 'erased')
      return refuse(
        'conflict',
        { field: 'Idempotency-Key', artifact_id: known.artifact.id },
        'The file of this idempotency key was deleted.',
      )
    return {
      events: [],
      reply: {
        artifact_id: known.artifact.id,
        ...(known.state === 'stored' && { attached: attachedOf(known) }),
        ...(known.counted && known.until !== undefined && { expires_at: known.until }),
      },
    }
  }
  if (files.filter((one) => one.state !== 'erased').length >= limits.file.most)
    return refuse(
      'conflict',
      { limit: limits.file.most },
      'The session has the maximum number of files; delete one first.',
    )
  const { name, mime_type, size_bytes, sha256, as, page_count, conversion } = file
  const id = cause.mint('artifact')
  const until = cause.at + limits.file.awaited
  const artifact: Artifact = {
    id,
    visibility: 'shared',
    name,
    mime_type,
    size_bytes,
    sha256,
    ...(conversion && { conversion }),
    created_by: cause.principal.id,
    created_at: timestamp(cause.at),
  }
  const attachment: SessionFile = {
    artifact,
    as,
    ...(page_count !== undefined && { page_count }),
    state: 'coming',
    until,
    hash,
    ...(key !== undefined && { key }),
    ...(organization !== undefined && { counted: true }),
  }
  if (organization === undefined)
    return { events: [{ type: 'attachment.reserved', attachment }], reply: { artifact_id: id } }
  return {
    events: [{ type: 'attachment.reserved', attachment }],
    tells: [
      tellArtifact(id, 'artifact.reserve', {
        organization,
        blob: fileName(cause.self.project, id),
        owner: cause.principal.id,
        size_bytes,
        attachment: { session_id: cause.self.id, until },
      }),
    ],
    reply: { artifact_id: id, expires_at: until },
  }
}
/**
 * Marks a file as stored, and completes its artifact. If several uploads used one key, the first
 * upload creates the file, and the other uploads get the status 200. Refuses with `conflict` if the
 * upload was abandoned or the file was deleted.
 */
export function attach(
  state: SessionState,
  { artifact_id }: Input<Api['session.attach']> & Attaching,
  cause: Cause,
): Decision<SessionEvent, Attached & { status_code?: 200 }> {
  const session = liveSession(state, cause)
  if (!session) return refuse('not_found')
  const file = getOwn(filesOf(session), artifact_id)
  if (!file || file.state === 'erased')
    return refuse('conflict', { artifact_id }, 'The upload of the file was abandoned; repeat it.')
  if (file.state === 'stored')
    return { events: [], reply: { ...attachedOf(file), status_code: 200 } }
  // Artifacts are listed by `created_at`. A new file must appear at the head of the list, so its
  // `created_at` is the time of completion.
  const artifact = { ...file.artifact, created_at: timestamp(cause.at) }
  const { name, mime_type, size_bytes, sha256 = '', conversion } = artifact
  return {
    events: [{ type: 'attachment.stored', id: artifact_id, created_at: artifact.created_at }],
    ...(file.counted && {
      tells: [
        tellArtifact(artifact_id, 'artifact.complete', {
          name,
          mime_type,
          size_bytes,
          sha256,
          attachment: true,
          ...(conversion?.state === 'converting' && { convert: true }),
        }),
      ],
    }),
    reply: attachedOf({ ...file, artifact }),
  }
}
/** Deletes a file. Its bytes are erased by an effect. */
export function detach(
  state: SessionState,
  { artifact_id }: Input<Api['session.detach']>,
  cause: Cause,
): Decision<SessionEvent, undefined> {
  const session = liveSession(state, cause)
  const file = session && getOwn(filesOf(session), artifact_id)
  if (!file)
    return refuse('not_found', { resource: 'attachment' }, 'There is no such file in this session.')
  if (file.state === 'coming')
    return refuse('conflict', { artifact_id }, 'The file is still being uploaded.')
  return file.state === 'erased'
    ? emptyDecision
    : { ...erasure(state, [artifact_id]), reply: undefined }
}
/** Abandons an upload that has failed. */
export function abandon(
  state: SessionState,
  { artifact_id }: Attaching,
): Decision<SessionEvent, SessionCommands['attachment.abandon']['reply']> {
  const file = getOwn(filesOf(state), artifact_id)
  if (file?.state === 'coming')
    return { ...erasure(state, [artifact_id]), reply: { abandoned: true } }
  return { events: [], reply: { abandoned: file?.state !== 'stored' } }
}
/** Erases a file whose artifact was deleted in the same commit. */
export function removed(
  state: SessionState,
  { artifact_id }: Attaching,
): Decision<SessionEvent, undefined> {
  const file = getOwn(filesOf(state), artifact_id)
  return file?.state === 'stored'
    ? { events: erasure(state, [artifact_id]).events, reply: undefined }
    : emptyDecision
}
/** Records the outcome of the conversion of a file, whose artifact changes in the same commit. */
export function converted(
  state: SessionState,
  { artifact_id, conversion }: SessionCommands['attachment.converted']['input'],
): Decision<SessionEvent, undefined> {
  const file = getOwn(filesOf(state), artifact_id)
  return file?.state === 'stored'
    ? { events: [{ type: 'attachment.converted', id: artifact_id, conversion }], reply: undefined }
    : emptyDecision
}

/** Returns the event that erases files, and the commands that remove their artifacts. */
function erasure(
  state: SessionState,
  ids: readonly string[],
): { readonly events: readonly [AttachmentEvent]; readonly tells: readonly Tell[] } {
  const files = filesOf(state)
  const counted = ids.filter((id) => getOwn(files, id)?.counted)
  return {
    events: [{ type: 'attachment.erased', ids, ...(counted.length > 0 && { counted }) }],
    tells: counted.map((id) => tellArtifact(id, 'artifact.remove', {})),
  }
}

const idsOf = (
  files: ReturnType<typeof filesOf>,
  which: (file: SessionFile) => boolean,
): string[] =>
  Object.values(files).flatMap((file) =>
    file.state !== 'erased' && which(file) ? [file.artifact.id] : [],
  )
function erase(draft: Draft, ids: readonly string[]): void {
  if (ids.length === 0) return
  const { events, tells } = erasure(draft.state, ids)
  emit(draft, events[0])
  draft.tells.push(...tells)
}
/** Erases all files when the session ends. */
export const eraseAll = (draft: Draft): void =>
  erase(
    draft,
    idsOf(filesOf(draft.state), () => true),
  )
/** Abandons uploads that did not arrive in time. */
export const abandonLateUploads = (draft: Draft): void =>
  erase(
    draft,
    idsOf(filesOf(draft.state), ({ until }) => until !== undefined && until <= draft.cause.at),
  )
