/**
 * Preparations of the webhook and secret rows, and the list of secrets. The preparations check
 * destinations, generate signing secrets, seal URLs and secrets, and wait for the outcome of test
 * deliveries. Executors send the deliveries.
 */

import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { connectedBy } from '../../protocol/events/integrations.ts'
import { isId } from '../../protocol/ids.ts'
import { START_TIMEOUT_MS } from '../../protocol/webhooks/delivery.ts'
import type { Webhook } from '../../protocol/webhooks/rows.ts'
import type { Call, Edge } from '../call.ts'
import { type LocalQuery, localQuery } from '../listing.ts'
import type { Prepare, Prepared } from '../prepare.ts'
import { withSecret } from './actions.ts'
import { shortEntries } from './integrations/signature.ts'
import { refuseUrl, withSealedUrl } from './seal-url.ts'

/**
 * Maximum duration of a test delivery in milliseconds: the maximum time until it starts, plus 12 s
 * until it ends.
 */
const PING_TIMEOUT_MS = START_TIMEOUT_MS + 12_000

const checkUrl = ({ world }: Edge, { body }: Call): Promise<Refusal | undefined> =>
  refuseUrl(world, 'url', (body as Partial<Webhook>).url || undefined)

/**
 * Waits for the outcome of a test delivery. After `PING_TIMEOUT_MS`, the test is reported as
 * failed.
 */
async function outcomeOf({ world }: Edge, project: string, id: string): Promise<unknown> {
  let wake = () => {}
  const stop = world.live(project, 'delivery', id, () => wake())
  let over = false
  const cancel = world.later(PING_TIMEOUT_MS, () => {
    over = true
    wake()
  })
  try {
    for (;;) {
      const changed = new Promise<void>((resolve) => {
        wake = resolve
      })
      const found = await world.ask({ project, kind: 'delivery', id }, 'outcome', {})
      if (isRefusal(found)) return found
      if (!found) return refuse('not_found')
      const { status, response_code, last_error, latency_ms } = found
      if (status === 'delivered' || status === 'failed')
        return {
          success: status === 'delivered',
          ...(response_code !== undefined && { status_code: response_code }),
          ...(last_error !== undefined && { error: last_error }),
          ...(latency_ms !== undefined && { latency_ms }),
        }
      if (over)
        return {
          success: false,
          error: 'The delivery was not sent in time: no node with the role executor is available.',
        }
      await changed
    }
  } finally {
    stop()
    cancel()
  }
}

/**
 * Reads the content of the delivery that is to be sent again. Returns `not_found` if the webhook
 * has no such delivery or the caller may not read the delivery, and `conflict` while the delivery
 * has no outcome or the webhook is disabled.
 */
async function contentOf(
  edge: Edge,
  { project, slots, caller }: Call,
): Promise<Prepared | Refusal> {
  const { webhook_id = '', delivery_id: id = '' } = slots
  const missing = refuse('not_found', { resource: 'delivery' }, 'There is no such delivery.')
  if (!project || !isId(id, 'delivery')) return missing
  const to = { project: project.id, kind: 'delivery', id } as const
  const [opening, outcome, kept] = await Promise.all([
    edge.world.ask(to, 'content', {}),
    edge.world.ask(to, 'outcome', {}),
    edge.world.ask({ ...to, kind: 'project', id: project.id }, 'webhook', { webhook_id }),
  ])
  const refused = [opening, outcome, kept].find((found) => found && isRefusal(found))
  if (refused) return refused as Refusal
  if (!opening || !outcome || !kept || isRefusal(opening) || isRefusal(outcome) || isRefusal(kept))
    return missing
  if (opening.to.kind !== 'webhook' || opening.to.webhook_id !== webhook_id || opening.once)
    return missing
  const { private_session: session_id, private_owner } = opening
  if (private_owner !== undefined && private_owner !== caller.principal.id) return missing
  if (session_id !== undefined) {
    const hidden = await edge.sessionVisibility.check(project.id, { session_id }, caller)
    if (hidden) return hidden.refused === 'not_found' ? missing : hidden
  }
  if (!kept.webhook.enabled) return refuse('conflict', undefined, 'The webhook is disabled.')
  const { status } = outcome
  return status === 'delivered' || status === 'failed'
    ? { input: { opening } }
    : refuse('conflict', { status }, `The delivery is ${status}; it is still being sent.`)
}

/**
 * Seals the entries of a secret. Equal entries have the same digest, so storing the same entries
 * again changes nothing. Refuses a secret that is too short to verify the webhooks of an
 * integration.
 */
function seal({ world }: Edge, { project, slots, body }: Call): Prepared | Refusal {
  if (!project) return {}
  const entries = body['entries'] as Readonly<Record<string, string>>
  const short = connectedBy([slots['secret_name'] ?? '']).length > 0 ? shortEntries(entries) : []
  if (short.length > 0) return refuseFields(...short)
  const names = Object.keys(entries).sort()
  const text = JSON.stringify(Object.fromEntries(names.map((name) => [name, entries[name]])))
  const digest = Buffer.from(
    world.seal(`secret\n${project.id}\n${slots['secret_name']}\n${text}`),
  ).toString('hex')
  // The input becomes part of the journal, so it contains no values in clear text.
  return {
    input: {
      entries: {},
      names,
      material: { sealed: world.lock(Buffer.from(text), project.id), digest },
    },
  }
}

/** Functions that prepare the commands of webhooks and secrets, by row name. */
export const webhookPreparations: Readonly<Record<string, Prepare>> = {
  'webhook.create': async (edge, call) =>
    (await checkUrl(edge, call)) ?? withSealedUrl(edge, call, 'url', withSecret(edge, call)),
  'webhook.update': async (edge, call) =>
    (await checkUrl(edge, call)) ?? withSealedUrl(edge, call, 'url'),
  'webhook.rotate_secret': withSecret,
  'webhook.ping': async (edge, call) =>
    (await checkUrl(edge, call)) ??
    withSealedUrl(edge, call, 'url', {
      answer: (reply) =>
        outcomeOf(edge, call.project?.id ?? '', (reply as { delivery_id: string }).delivery_id),
    }),
  'webhook.resend': contentOf,
  'secret.put': seal,
}
export const secretQueries: Readonly<Record<string, LocalQuery>> = {
  'secret.list': localQuery<'secret.list'>(async ({ world, project = '' }) => {
    const items = await world.ask({ project, kind: 'project', id: project }, 'secrets', {})
    return isRefusal(items) ? items : { items: [...items] }
  }),
}
