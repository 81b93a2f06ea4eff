/** The callback address of an interaction's HTTP subscriber. In records its query is masked. */
import { type KeptUrl, keptUrl, type UrlParts, withMaskedUrl } from '../masked-url.ts'
import type { Interaction } from './schema.ts'

/**
 * The record as clients receive it. Releases that did not seal values stored the address in clear.
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

/** The address with its values, of an interaction in an event; undefined without a subscriber. */
export function callbackOf({ consumer }: Interaction, parts: UrlParts): KeptUrl | undefined {
  const { http_subscriber } = consumer
  return http_subscriber && keptUrl(http_subscriber.callback_url, parts)
}
