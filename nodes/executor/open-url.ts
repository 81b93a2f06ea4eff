/**
 * Restores URLs for requests, and removes their query values from responses. The gateway that
 * received a URL sealed its query values.
 */
import type { World } from '../../gateway/ports.ts'
import { openUrl, partUrl, sealedUrlOf, type UrlParts } from '../../protocol/masked-url.ts'
import type { Received } from '../outbound/post.ts'

/** Minimum length of a value that is removed. Shorter ones also occur in other texts. */
const MIN_SECRET_LENGTH = 8

/**
 * Returns the URL with its query values, or undefined when one of them cannot be decrypted.
 * @param home id of the project or organization that owns the URL.
 */
export const openedUrl = (
  world: Pick<World, 'unlock'>,
  home: string,
  url: string,
  parts: UrlParts,
): string | undefined =>
  openUrl(sealedUrlOf(url, parts), (sealed) => {
    const bytes = world.unlock(sealed, home)
    return bytes && Buffer.from(bytes).toString('utf8')
  })

/**
 * Returns a response with `***` in place of the query values of the URL that was called. Pages of
 * errors may repeat the URL, and the beginning of such a page is stored.
 */
export function withoutQueryValues(answer: Received, url: string): Received {
  const values = partUrl(url).values.flatMap((value) =>
    value === null ? [] : [value, decoded(value)],
  )
  const text = answer.body.toString('utf8')
  const shown = values
    .filter(({ length }) => length >= MIN_SECRET_LENGTH)
    .reduce((left, value) => left.replaceAll(value, '***'), text)
  return shown === text ? answer : { ...answer, body: Buffer.from(shown) }
}
function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
