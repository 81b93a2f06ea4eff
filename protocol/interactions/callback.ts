/** The address that an HTTP subscriber of an interaction is called at. Records have it with a masked query. */
import { keptUrl, withMaskedUrl, type KeptUrl, type UrlParts } from '../masked-url.ts'
import type { Interaction } from './schema.ts'

/** The record as it is answered: releases that sealed no values stored the address in clear. */
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

/** The address with its values, of an interaction as an event has it; undefined without a subscriber. */
export function callbackOf({ consumer }: Interaction, parts: UrlParts): KeptUrl | undefined {
  const { http_subscriber } = consumer
  return http_subscriber && keptUrl(http_subscriber.callback_url, parts)
}
