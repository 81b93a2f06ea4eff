/**
 * The callback URL of the HTTP subscriber of an interaction. Records contain it with a masked
 * query.
 */
import { type SealedUrl, sealedUrlOf, type UrlParts, withMaskedUrl } from '../masked-url.ts'
import type { Interaction } from './schema.ts'

/**
 * Returns the record with a masked callback URL. Records of earlier releases contain it unmasked.
 */
export function withMaskedCallback(interaction: Interaction): Interaction {
  const { consumer } = interaction
  const { http_subscriber } = consumer
  return http_subscriber
    ? {
        ...interaction,
        consumer: { ...consumer, http_subscriber: withMaskedUrl(http_subscriber, 'callback_url') },
      }
    : interaction
}

/**
 * Returns the callback URL of an interaction with its sealed values; undefined without an HTTP
 * subscriber.
 * @param parts the sealed values, as the event that created the interaction contains them.
 */
export function callbackOf({ consumer }: Interaction, parts: UrlParts): SealedUrl | undefined {
  const { http_subscriber } = consumer
  return http_subscriber && sealedUrlOf(http_subscriber.callback_url, parts)
}
