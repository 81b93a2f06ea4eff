/**
 * Requests that fire the HTTP triggers of loops. They need no API credential. They are
 * authenticated by the handle in the path and, if the trigger has a secret, by the signature of the
 * body. An accepted request is stored as a source event before it is answered. Runs start later.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { unauthenticated } from '../../protocol/access/unauthenticated-rows.ts'
import type { JsonObject } from '../../protocol/common.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import type { ServicePublication } from '../../protocol/events/sources.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { type HandleOwner, handleId } from '../../protocol/loops/handles.ts'
import type { TriggerFacts } from '../../protocol/loops/rows.ts'
import { countRefusal } from '../auth/rate.ts'
import type { Edge } from '../call.ts'
import { originOf } from '../http/origin.ts'
import type { Incoming } from '../http/request.ts'
import type { Answer } from '../http/respond.ts'
import { readObject } from '../http/validate.ts'
import type { Handler } from '../serve.ts'
import { secretContext } from './loops.ts'
import { acceptedEvent, publishEvent, publishedUnder } from './publish-idempotently.ts'

/** Maximum size of a body in bytes. */
export const TRIGGER_LIMIT = unauthenticated['trigger.http'].shape.limit
/**
 * A trigger that does not exist. It is looked up for unknown handles, so that the response time
 * does not reveal which handles exist.
 */
const NOBODY: HandleOwner = {
  project: 'prj_00000000000000000000000000',
  loop_id: 'loop_00000000000000000000000000',
  trigger_id: 'trig_00000000000000000000000000',
}
/** Maximum length of an idempotency key in characters. */
const MAX_KEY_LENGTH = 255
const missing = (): Refusal => refuse('not_found', undefined, 'There is no such trigger.')

/**
 * Name of the signature header, in lower case.
 * @param brand header brand in any letter case.
 */
export const signatureHeader = (brand: string): string => `x-${brand.toLowerCase()}-signature`

/**
 * Handles a request to a trigger. An accepted request is answered with status 202 and the id of its
 * source event.
 */
export const receiveTrigger =
  (edge: Edge): Handler =>
  async (incoming) => {
    const { world, limits } = edge
    const handle = decoded(incoming.slots[0] ?? '')
    if (!(await edge.becomesFresh())) return refuse('service_unavailable')
    const found = await find(edge, handle)
    // A request that is refused here is counted against the rate limit of its IP address, not
    // against the limits of the trigger and the organization.
    const denied = isRefusal(found)
      ? found
      : incoming.broken === 'too_large'
        ? refuse('payload_too_large', { limit: TRIGGER_LIMIT })
        : signed(edge, found.owner, found.facts, incoming)
          ? undefined
          : refuse('invalid_signature')
    if (isRefusal(found) || denied) return countRefusal(limits, incoming.ip, denied ?? missing())
    const limited = await limits?.(
      `http_trigger:${world.hash(handle).slice(0, 24)}`,
      world.organization(),
    )
    if (limited?.refused) return limited.refused
    const { owner, facts } = found
    if (facts.status !== 'active') return repeated(edge, owner, facts, keyOf(incoming))
    const event = bodyOf(incoming)
    if (isRefusal(event)) return event
    const key = keyOf(incoming)
    if (isRefusal(key)) return key
    const publication: ServicePublication = {
      event_type: 'http_trigger.received',
      source_kind: 'http_trigger',
      source_id: owner.trigger_id,
      event,
      meta: { trigger_id: owner.trigger_id, http_handle: handle },
      depth: 0,
      ...(key !== undefined && { dedup_key: dedupKey(owner, key) }),
    }
    const { trigger_id } = owner
    const origin = originOf(
      world,
      {
        principal: { type: 'system', id: trigger_id, name: `HTTP trigger ${facts.key}` },
        credential: { type: 'internal', id: trigger_id },
      },
      incoming,
    )
    const outcome = await publishEvent(world, owner.project, 'http_trigger', publication, origin)
    if (isRefusal(outcome)) return outcome
    return acceptedEvent(outcome.reply.source_event_id, outcome.reply.deduped)
  }

const dedupKey = ({ trigger_id }: HandleOwner, key: string): string =>
  `http_trigger:${trigger_id}:${key}`
/**
 * Answers a request while the loop is not active. A repeat under a known idempotency key receives
 * the id of the event that the first request published. Any other request is refused.
 */
async function repeated(
  { world }: Edge,
  owner: HandleOwner,
  { status }: TriggerFacts,
  key: string | undefined | Refusal,
): Promise<Answer | Refusal> {
  const first =
    typeof key === 'string' ? await publishedUnder(world, owner.project, dedupKey(owner, key)) : key
  if (typeof first === 'string') return acceptedEvent(first, true)
  return first ?? (status === 'paused' ? refuse('loop_paused') : refuse('loop_not_runnable'))
}

function decoded(slot: string): string {
  try {
    return decodeURIComponent(slot)
  } catch {
    return ''
  }
}

async function find(
  { world, directory }: Edge,
  handle: string,
): Promise<{ owner: HandleOwner; facts: TriggerFacts } | Refusal> {
  const owner = await world.ask(
    { project: world.organization(), kind: 'trigger_handle', id: handleId(handle) },
    'owner',
    { handle },
  )
  if (owner && isRefusal(owner)) return owner
  const { project, loop_id, trigger_id } = owner ?? NOBODY
  const facts = await world.ask({ project, kind: 'loop', id: loop_id }, 'trigger', {
    trigger_id,
  })
  if (facts && isRefusal(facts)) return facts
  const organization = await directory.organization()
  if (isRefusal(organization)) return organization
  const home = getOwn(organization.projects, project)
  return owner && facts?.enabled && home && !home.deleted ? { owner, facts } : missing()
}

/**
 * Returns whether the body is signed with the trigger's secret; true for a trigger without a
 * secret.
 */
function signed(
  { world }: Edge,
  { loop_id }: HandleOwner,
  { key, secret }: TriggerFacts,
  incoming: Incoming,
): boolean {
  if (secret === undefined) return true
  const opened = world.unlock(secret, secretContext(loop_id, key))
  const given = /^sha256=([0-9a-f]{64})$/i.exec(incoming.header('signature') ?? '')?.[1]
  if (opened === undefined || given === undefined || incoming.broken) return false
  return timingSafeEqual(
    Buffer.from(given, 'hex'),
    createHmac('sha256', keyBehind(opened)).update(incoming.body, 'utf8').digest(),
  )
}

/**
 * Returns the HMAC key of a secret. If the secret is the base64 form of 32 bytes, as the service
 * generates it, these bytes are the key. For any other secret, the text itself is the key.
 */
function keyBehind(secret: Uint8Array): Uint8Array {
  const text = Buffer.from(secret).toString()
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === 32 && bytes.toString('base64') === text ? bytes : secret
}

/** Parses the body as a JSON object. An empty body is an empty object. */
function bodyOf({ body, broken }: Incoming): JsonObject | Refusal {
  if (broken) return refuseFields({ field: 'body', message: 'is not UTF-8' })
  return body.trim() === '' ? {} : readObject(body)
}

/**
 * Returns the idempotency key of the request: the query parameter `idempotency_key`, or else the
 * header `X-Idempotency-Key`, or else `Idempotency-Key`. Blank values are ignored.
 */
function keyOf(incoming: Incoming): string | undefined | Refusal {
  const key =
    new URLSearchParams(incoming.query).get('idempotency_key')?.trim() ||
    incoming.header('x-idempotency-key') ||
    incoming.header('idempotency-key')
  return key === undefined || key.length <= MAX_KEY_LENGTH
    ? key
    : refuseFields({
        field: 'idempotency_key',
        message: `must have at most ${MAX_KEY_LENGTH} characters`,
      })
}
