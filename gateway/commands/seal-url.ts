/**
 * Seals the query values of URLs in request bodies before the URLs reach an actor, so that no
 * journal contains the values in clear text. Also refuses URLs that the service may not call.
 */
import { type Refusal, refuseFields } from '../../protocol/errors.ts'
import type { CreateInteraction } from '../../protocol/interactions/rows.ts'
import type { Consumer } from '../../protocol/interactions/schema.ts'
import { maskUrl, partUrl, type SentParts } from '../../protocol/masked-url.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import type { World } from '../ports.ts'
import type { Prepared } from '../prepare.ts'

type Sealing = Pick<World, 'seal' | 'lock'>

/**
 * Converts a URL to the form that commands contain: the masked URL, and its sealed query values.
 * @param home id of the project or organization for which the values are sealed.
 */
function sealUrl(
  world: Sealing,
  home: string,
  text: string,
): { readonly url: string; readonly url_parts: SentParts } {
  const { url, values } = partUrl(text)
  return {
    url,
    url_parts: values.map((value) =>
      value === null
        ? null
        : {
            sealed: world.lock(Buffer.from(value), home),
            digest: Buffer.from(world.seal(`url\n${home}\n${value}`)).toString('hex'),
          },
    ),
  }
}

/**
 * Adds the sealed form of the URL in a body field to the input of the command. Without a URL in the
 * body, the preparation is returned unchanged.
 */
export function withSealedUrl(
  edge: Edge,
  call: Call,
  field: 'url' | 'endpoint_url',
  prepared: Prepared = {},
): Prepared {
  const text = call.body[field]
  if (typeof text !== 'string') return prepared
  const { url, url_parts } = sealUrl(edge.world, scopeId(edge, call), text)
  return { ...prepared, input: { ...prepared.input, [field]: url, url_parts } }
}

/**
 * Returns the refusal for a URL that the service may not call, or undefined. It is checked again
 * before each request.
 * @param field path of the URL in the request.
 * @param url undefined if the request has none.
 * @param address the address to check, if it differs from `url`.
 */
export async function refuseUrl(
  { unreachable }: Pick<World, 'unreachable'>,
  field: string,
  url: string | undefined,
  address = url,
): Promise<Refusal | undefined> {
  if (url === undefined || address === undefined) return undefined
  const message = await unreachable?.(address)
  return message === undefined ? undefined : refuseFields({ field, message, actual: maskUrl(url) })
}

const subscriberOf = ({ consumer }: CreateInteraction) =>
  typeof consumer === 'object' ? consumer.http_subscriber : undefined

/** Returns the refusal for a callback URL that the service may not call, or undefined. */
export const refuseCallback = (
  world: Pick<World, 'unreachable'>,
  asked: CreateInteraction,
): Promise<Refusal | undefined> =>
  refuseUrl(world, 'consumer.http_subscriber.callback_url', subscriberOf(asked)?.callback_url)

/**
 * Returns the command input for the consumer of a new interaction, with the URL of its HTTP
 * subscriber sealed. The input is empty without such a subscriber.
 */
export function sealedCallback(
  world: Sealing,
  project: string,
  asked: CreateInteraction,
): Readonly<Record<string, unknown>> {
  const subscriber = subscriberOf(asked)
  if (!subscriber) return {}
  const { url, url_parts } = sealUrl(world, project, subscriber.callback_url)
  const http_subscriber = { ...subscriber, callback_url: url }
  return { consumer: { ...(asked.consumer as Consumer), http_subscriber }, url_parts }
}
