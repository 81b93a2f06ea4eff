/**
 * Files of a session. An upload is announced before its bytes are stored, so the state contains
 * every object that may be in the store. An effect erases the bytes of abandoned uploads, of
 * deleted files, and of all files when the session ends.
 *
 * Invariants:
 * F1. The bytes of an acknowledged file were stored before the acknowledgement. The file stays
 *     `stored` until it is deleted or the session ends.
 * F2. When an upload is given up, or a file is deleted, an effect erases the bytes.
 */
import type { Api } from '../../protocol/api.ts'
import type { Artifact } from '../../protocol/artifacts/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { type Attached, blockOf, type KeptAttachment } from '../../protocol/sessions/attachments.ts'
import type { Attaching, SessionCommands } from '../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../protocol/sessions/events.ts'
import { limits } from '../../protocol/sessions/limits.ts'
import type { Cause, Decision } from '../actor.ts'
import { conversionOfFile } from './conversion.ts'
import { type Draft, emit, live } from './draft.ts'
import { filesOf } from './files.ts'
import type { SessionState } from './state.ts'

const attachedOf = (file: KeptAttachment): Attached => ({
  artifact: file.artifact,
  content_block: blockOf(file),
})

/**
 * Announces a file, after which its bytes may be stored. A repeat with the same key and upload
 * refers to the same file; the same key with another upload is refused.
 */
export function reserve(
  state: SessionState,
  { file, hash, key }: SessionCommands['attachment.reserve']['input'],
  cause: Cause,
): Decision<SessionEvent, SessionCommands['attachment.reserve']['reply']> {
  const session = live(state, cause)
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
  const artifact: Artifact = {
    id: cause.mint('artifact'),
    visibility: 'shared',
    name,
    mime_type,
    size_bytes,
    sha256,
    ...(conversion && { conversion }),
    created_by: cause.principal.id,
    created_at: timestamp(cause.at),
  }
  const attachment: KeptAttachment = {
    artifact,
    as,
    ...(page_count !== undefined && { page_count }),
    state: 'coming',
    until: cause.at + limits.file.awaited,
    hash,
    ...(key !== undefined && { key }),
  }
  return {
    events: [{ type: 'attachment.reserved', attachment }],
    reply: { artifact_id: artifact.id },
  }
}
/**
 * Marks a file as stored. If several uploads used one key, the first one creates the file and the
 * others get the status 200.
 */
export function attach(
  state: SessionState,
  { artifact_id }: Input<Api['session.attach']> & Attaching,
  cause: Cause,
): Decision<SessionEvent, Attached & { status_code?: 200 }> {
  const session = live(state, cause)
  const file = session && getOwn(filesOf(session), artifact_id)
  if (!file || file.state === 'erased') return refuse('not_found')
  if (file.state === 'stored')
    return { events: [], reply: { ...attachedOf(file), status_code: 200 } }
  const conversion = conversionOfFile(file, cause)
  return {
    events: [
      {
        type: 'attachment.stored',
        id: artifact_id,
        ...(conversion && { convert_job: conversion.job_id }),
      },
    ],
    ...(conversion && { tells: [conversion.tell] }),
    reply: attachedOf(file),
  }
}
/** Deletes a file; its bytes are erased by an effect. */
export function detach(
  state: SessionState,
  { artifact_id }: Input<Api['session.detach']>,
  cause: Cause,
): Decision<SessionEvent, undefined> {
  const session = live(state, cause)
  const file = session && getOwn(filesOf(session), artifact_id)
  if (!file)
    return refuse('not_found', { resource: 'attachment' }, 'There is no such file in this session.')
  if (file.state === 'coming')
    return refuse('conflict', { artifact_id }, 'The file is still being uploaded.')
  return {
    events: file.state === 'erased' ? [] : [{ type: 'attachment.erased', ids: [artifact_id] }],
    reply: undefined,
  }
}

const idsOf = (
  files: ReturnType<typeof filesOf>,
  which: (file: KeptAttachment) => boolean,
): string[] =>
  Object.values(files).flatMap((file) =>
    file.state !== 'erased' && which(file) ? [file.artifact.id] : [],
  )
const erase = (on: Draft, ids: readonly string[]): void => {
  if (ids.length > 0) emit(on, { type: 'attachment.erased', ids })
}
/** Erases all files when the session ends. */
export const eraseAll = (on: Draft): void =>
  erase(
    on,
    idsOf(filesOf(on.state), () => true),
  )
/** Gives up uploads that did not arrive in time. */
export const giveUp = (on: Draft): void =>
  erase(
    on,
    idsOf(filesOf(on.state), ({ until }) => until !== undefined && until <= on.cause.at),
  )
