/**
 * Stores, lists, sends and deletes the files of sessions. An uploaded file is inspected, reserved
 * in its session and in the quota, stored, and only then announced to the session as stored. If the
 * announcement never arrives, the session ends the reservation, and effects release the quota and
 * delete any stored bytes. Files are inspected in `../files/file.ts`.
 */

import type { Artifact } from '../../protocol/artifacts/schema.ts'
import type { Origin } from '../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { CommandInput } from '../../protocol/queries/commands.ts'
import type { AddressOf } from '../../protocol/queries/owners.ts'
import { type Attached, fileName } from '../../protocol/sessions/attachments.ts'
import { limits } from '../../protocol/sessions/limits.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { completeRemoval } from '../commands/artifacts/remove.ts'
import { toQuota } from '../commands/artifacts/reservation.ts'
import { answerWithoutBytes, planContent } from '../files/content.ts'
import { eraseFile } from '../files/erase.ts'
import { inspect } from '../files/file.ts'
import { reportMissing } from '../files/missing.ts'
import { keyOf } from '../http/idempotency.ts'
import type { Answer, Exchange } from '../http/respond.ts'
import { sendNew } from '../http/send.ts'
import { type LocalQuery, localQuery, pageOf } from '../listing.ts'
import type { Files, World } from '../ports.ts'
import type { Prepare, Prepared } from '../prepare.ts'
import { recordNotFound } from './visibility.ts'

const missingSession = recordNotFound('session')
const noFile: Refusal = refuse(
  'not_found',
  { resource: 'attachment' },
  'There is no such file in this session.',
)
const switchedOff: Refusal = refuse(
  'permission_denied',
  undefined,
  'Attachments are disabled in this project; its administrators can enable them.',
)
const unavailable: Refusal = refuse('artifact_storage_unavailable')
const sessionOf = (project: string, id: string): AddressOf<'session'> | undefined =>
  isId(id, 'agent_session') ? { project, kind: 'session', id } : undefined

/** Returns the name of a file without its directories. Both `/` and `\` separate directories. */
const base = (name: string): string => name.split(/[/\\]/).at(-1)?.trim() ?? ''
async function upload(
  edge: Edge,
  call: Call,
  _: unknown,
  origin: Origin,
): Promise<Prepared | Refusal> {
  const { world } = edge
  const project = scopeId(edge, call)
  const to = sessionOf(project, call.slots['session_id'] ?? '')
  if (!to) return missingSession
  const known = await edge.directory.organization()
  if (isRefusal(known)) return known
  if (getOwn(known.projects, project)?.attachments === false) return switchedOff
  const { file, body } = call
  if (!file || !world.files) return unavailable
  const key = keyOf(call)
  if (isRefusal(key)) return key
  const { bytes, filename = '', type } = file
  const { size_bytes, mime } = body
  if (size_bytes !== undefined && size_bytes !== bytes.length)
    return refuseFields({
      field: 'size_bytes',
      message: 'does not match the size of the file',
      expected: bytes.length,
      actual: size_bytes,
    })
  const name = (typeof body['name'] === 'string' && body['name'].trim()) || base(filename)
  if (name.length > limits.file.name)
    return refuseFields({
      field: 'name',
      message: `must have at most ${limits.file.name} characters`,
      actual: name.length,
    })
  const hint = typeof mime === 'string' ? mime : type
  const inspected = await inspect(bytes, name === '' ? 'file' : name, hint)
  if (isRefusal(inspected)) return inspected
  const { facts } = inspected
  const hash = world.hash(JSON.stringify([facts.sha256, facts.name, hint ?? null]))
  const saved = await store(
    { world, files: world.files, to, origin },
    {
      file: facts,
      hash,
      organization: world.organization(),
      ...(key !== undefined && { key: `${call.caller.principal.id} ${key}` }),
    },
    bytes,
  )
  return isRefusal(saved)
    ? saved.refused === 'not_found'
      ? missingSession
      : saved
    : { done: saved }
}

/** The data for storing a file: its session, the store, and the origin of the commands. */
interface Storing {
  readonly world: World
  readonly files: Files
  readonly to: AddressOf<'session'>
  readonly origin: Origin
}
/**
 * Reserves a file, stores it, and announces it to its session. A repeated upload is answered with
 * the first file and the status 200.
 */
async function store(
  storing: Storing,
  input: CommandInput<'session', 'attachment.reserve'>,
  bytes: Uint8Array,
): Promise<(Attached & { readonly status_code?: 200 }) | Refusal> {
  const { world, files, to, origin } = storing
  const reserved = await sendNew(world, to, 'attachment.reserve', input, origin)
  if (isRefusal(reserved)) return reserved
  const { artifact_id, attached, expires_at } = reserved.reply
  if (attached) return { ...attached, status_code: 200 }
  const { size_bytes } = input.file
  if (expires_at !== undefined) {
    const quota = { artifact: artifact_id, bytes: size_bytes, expires_at }
    const admitted = await toQuota(storing, 'quota.reserve', quota)
    if (isRefusal(admitted))
      return admitted.refused === 'artifact_conflict'
        ? ended(storing, input, artifact_id)
        : giveUp(storing, artifact_id, expires_at, admitted)
  }
  const place = fileName(to.project, artifact_id)
  try {
    await files.put(place, bytes)
  } catch (error) {
    world.log.warn({ event: 'file_store_failed', err: error, artifact_id }, 'file not stored')
    return giveUp(storing, artifact_id, expires_at, unavailable)
  }
  const done = await sendNew(world, to, 'session.attach', { artifact_id }, origin)
  if (!isRefusal(done)) {
    // If `quota.settle` fails, an effect of the artifact repeats it.
    if (expires_at !== undefined)
      await toQuota(storing, 'quota.settle', { artifact: artifact_id, bytes: size_bytes })
    return done.reply
  }
  // These refusals mean that the session has ended or has abandoned the upload, so nothing refers
  // to the file. After any other refusal, the session may have accepted the file.
  if (done.refused === 'not_found' || done.refused === 'conflict') await eraseFile(world, place)
  return done
}
/**
 * Returns the outcome of an upload that the quota reports as ended: the file, if another upload
 * under the same key was faster, or a refusal, if the upload has expired.
 */
async function ended(
  { world, to, origin }: Storing,
  input: CommandInput<'session', 'attachment.reserve'>,
  artifact_id: string,
): Promise<(Attached & { readonly status_code: 200 }) | Refusal> {
  const again =
    input.key === undefined
      ? undefined
      : await sendNew(world, to, 'attachment.reserve', input, origin)
  if (again && isRefusal(again)) return again
  return again?.reply.attached
    ? { ...again.reply.attached, status_code: 200 }
    : refuse('conflict', { artifact_id }, 'The upload of the file was abandoned; repeat it.')
}
/**
 * Abandons an upload that has failed, and releases its part of the quota. If this fails, the
 * session does the same at the deadline.
 */
async function giveUp(
  storing: Storing,
  artifact_id: string,
  expires_at: number | undefined,
  refusal: Refusal,
): Promise<Refusal> {
  const { world, to, origin } = storing
  if (expires_at === undefined) return refusal
  const given = await sendNew(world, to, 'attachment.abandon', { artifact_id }, origin)
  if (!isRefusal(given) && given.reply.abandoned)
    await toQuota(storing, 'quota.release', { artifact: artifact_id, until: expires_at })
  return refusal
}

/**
 * Prepares a detachment: before the call is answered, the bytes of the file are deleted, and its
 * part of the quota is released. Effects repeat both, in case the gateway could not complete them.
 */
const detach: Prepare = (edge, call, _identity, origin) => {
  const { world } = edge
  const project = scopeId(edge, call)
  const id = call.slots['artifact_id'] ?? ''
  return {
    async after(outcome) {
      if (isRefusal(outcome)) return
      const erased = await completeRemoval({ world, origin }, project, id)
      // `completeRemoval` does not erase a file that an earlier release stored, because such a file
      // has no artifact actor. It is erased here instead.
      if (!erased) await eraseFile(world, fileName(project, id))
    },
  }
}
/** Preparations of the attachment commands, by operation name. */
export const attachmentPreparations: Readonly<Record<string, Prepare>> = {
  'session.attach': upload,
  'session.detach': detach,
}

/** Handlers of the attachment queries, by operation name. */
export const attachmentQueries: Readonly<Record<string, LocalQuery>> = {
  'session.attachments': localQuery<'session.attachments'>(async (context, { session_id }) => {
    const to = sessionOf(context.project ?? '', session_id)
    const found = to ? await context.world.ask(to, 'attachments', {}) : undefined
    if (!found || isRefusal(found)) return found ?? missingSession
    const items = [...found.items].sort((a, b) => (after(a, positionOf(b)) ? 1 : -1))
    return pageOf(context, 'session.attachments', items, positionOf, after)
  }),
}
type Position = readonly [created_at: string, id: string]
const positionOf = ({ created_at, id }: Artifact): Position => [created_at, id]
const after = ({ created_at, id }: Artifact, [time, other]: Position): boolean =>
  created_at > time || (created_at === time && id > other)

/**
 * Answers with the bytes of a file. Memory is reserved before the bytes are read, and released when
 * the exchange ends.
 */
export async function sendFile(
  edge: Edge,
  call: Call,
  exchange: Exchange,
): Promise<Answer | Refusal> {
  const { world, bodyMemory: room } = edge
  const project = scopeId(edge, call)
  const { session_id = '', artifact_id = '' } = call.slots
  const to = sessionOf(project, session_id)
  const file =
    to && isId(artifact_id, 'artifact')
      ? await world.ask(to, 'attachment', { artifact_id })
      : undefined
  if (!file) return noFile
  if (isRefusal(file)) return file
  const plan = planContent(file, call.incoming)
  const short = answerWithoutBytes(plan, file)
  if (short) return short
  const { status, headers, type, start, end } = plan
  exchange.onClose(await room.acquire(file.size_bytes))
  let bytes: Uint8Array | undefined
  try {
    bytes = await world.files?.get(fileName(project, artifact_id))
    if (!bytes) reportMissing(world, artifact_id)
  } catch (error) {
    world.log.warn({ event: 'file_read_failed', err: error, artifact_id }, 'file read failed')
  }
  return bytes ? { status, headers, type, text: bytes.subarray(start, end) } : unavailable
}
