/** The ids of requests, which responses contain as `X-Request-ID` and log lines as `request_id`. */
import type { World } from '../ports.ts'
import { uniqueTexts } from './hex.ts'

const VALID = /^[\w.:-]{1,128}$/

/**
 * Creates a generator of ids for requests without a valid `X-Request-ID` header. The ids are
 * unique.
 */
export function requestIds(world: World): () => string {
  const next = uniqueTexts(world.random)
  return () => `req_${next()}`
}

/**
 * Returns the id of a request: the given one if it is valid, or else a new one.
 * @param given the header `X-Request-ID`; undefined or empty when absent.
 */
export const requestIdOf = (given: string | undefined, newId: () => string): string =>
  given !== undefined && VALID.test(given) ? given : newId()
