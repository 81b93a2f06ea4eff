/**
 * Receives webhooks from GitHub and GitLab at the endpoints of a project. A request is
 * authenticated by the provider's signature or token, with the secret that the project stores for
 * the provider (`signature.ts`). An accepted request is stored as a source event before it is
 * answered.
 *
 * Invariants:
 * I1. A body is parsed only after the request has been authenticated.
 * I2. A request that is not authenticated is counted against the rate limit of its IP address,
 *     never against the limit of the integration.
 * I3. The response is the same for a project that does not exist and a project without a secret for
 *     the provider.
 */

import type { OrganizationDirectory } from '../../../protocol/access/directory.ts'
import { unauthenticated } from '../../../protocol/access/unauthenticated-rows.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import {
  integrationSecret,
  isProvider,
  type ProviderName,
} from '../../../protocol/events/integrations.ts'
import type { ServicePublication } from '../../../protocol/events/sources.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { countRefusal } from '../../auth/rate.ts'
import type { Edge } from '../../call.ts'
import { originOf } from '../../http/origin.ts'
import type { Incoming } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import { readObject } from '../../http/validate.ts'
import type { Handler } from '../../serve.ts'
import { acceptedEvent, publishEvent } from '../publish-idempotently.ts'
import { readEvent } from './event.ts'
import { isFrom } from './signature.ts'

const { shape } = unauthenticated['integration.receive']
/** The request headers that are read, in lower case. */
export const INTEGRATION_HEADERS = [
  'x-hub-signature-256',
  'x-github-event',
  'x-github-delivery',
  'x-gitlab-token',
  'x-gitlab-event',
  'x-gitlab-event-uuid',
  'idempotency-key',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
] as const
const FORM = 'application/x-www-form-urlencoded'

interface Receiver {
  readonly project: string
  readonly provider: ProviderName
  /** Entries of the provider's secret. */
  readonly entries: Readonly<Record<string, string>>
}

/**
 * Handles a webhook from a provider. An accepted request is answered with status 202 and the id of
 * its source event, and a test request with status 204.
 */
export const receiveIntegration =
  (edge: Edge): Handler =>
  async (incoming) => {
    const { world, limits } = edge
    if (!(await edge.becomesFresh())) return refuse('service_unavailable')
    const receiver = await find(edge, incoming)
    if (isRefusal(receiver)) return countRefusal(limits, incoming.ip, receiver)
    const denied = refused(receiver, incoming, world.now())
    if (denied) return countRefusal(limits, incoming.ip, denied)
    const { project, provider } = receiver
    const limited = await limits?.(`integration:${provider}:${project}`, world.organization())
    if (limited?.refused) return limited.refused
    const body = bodyOf(incoming)
    if (isRefusal(body)) return body
    const header = (name: string) => incoming.further(name)
    const read = readEvent(provider, { header, text: incoming.body, body })
    if ('test' in read) return { status: 204 }
    if ('fault' in read)
      return refuseFields({ field: read.fault, message: 'is missing or malformed' })
    return publish(edge, receiver, read, incoming)
  }

const missing = (): Refusal => refuse('not_found', undefined, 'There is no such receiver.')

/**
 * Finds the receiver that the path identifies. Returns `not_found` unless its project has a secret
 * for the provider.
 */
async function find(
  { world, directory }: Edge,
  { slots: [named = '', provider = ''] }: Incoming,
): Promise<Receiver | Refusal> {
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const project = projectNamed(known, named)
  if (project === undefined || !isProvider(provider)) return missing()
  const secret = await world.ask({ project, kind: 'project', id: project }, 'secret', {
    ref: integrationSecret(provider),
  })
  if (secret && isRefusal(secret)) return secret
  const opened = secret && world.unlock(secret.sealed, project)
  return opened
    ? {
        project,
        provider,
        entries: JSON.parse(Buffer.from(opened).toString('utf8')) as Receiver['entries'],
      }
    : missing()
}
const projectNamed = ({ projects, handles }: OrganizationDirectory, text: string) => {
  const id = getOwn(projects, text) ? text : getOwn(handles, text)
  const project = id === undefined ? undefined : getOwn(projects, id)
  return project && !project.deleted ? project.id : undefined
}

function refused(receiver: Receiver, incoming: Incoming, now: number): Refusal | undefined {
  const { provider, entries } = receiver
  if (incoming.broken === 'too_large') return refuse('payload_too_large', { limit: shape.limit })
  const header = (name: string) => incoming.further(name)
  return !incoming.broken && isFrom(provider, { header, body: incoming.body }, entries, now)
    ? undefined
    : refuse('invalid_signature')
}

/**
 * Parses the body as a JSON object. GitHub can also send the object as the field `payload` of a
 * form.
 */
function bodyOf(incoming: Incoming): JsonObject | Refusal {
  const form = incoming.header('content-type')?.toLowerCase().startsWith(FORM)
  const text = form ? (new URLSearchParams(incoming.body).get('payload') ?? '') : incoming.body
  return readObject(text)
}

async function publish(
  { world }: Edge,
  { project, provider }: Receiver,
  publication: ServicePublication,
  incoming: Incoming,
): Promise<Answer | Refusal> {
  const origin = originOf(
    world,
    {
      principal: { type: 'system', id: provider, name: `Webhooks of ${provider}` },
      credential: { type: 'internal', id: provider },
    },
    incoming,
  )
  const outcome = await publishEvent(world, project, 'integration', publication, origin)
  if (isRefusal(outcome)) return outcome
  return acceptedEvent(outcome.reply.source_event_id, outcome.reply.deduped)
}
