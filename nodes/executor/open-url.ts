/** Restores URLs for requests. The gateway that received a URL sealed its query values. */
import type { World } from '../../gateway/ports.ts'
import { openUrl, sealedUrlOf, type UrlParts } from '../../protocol/masked-url.ts'

/**
 * Returns the URL with its query values, or undefined when one of them cannot be decrypted.
 * @param home id of the project or organization that owns the URL.
 */
export const restoreUrl = (
  world: Pick<World, 'unlock'>,
  home: string,
  url: string,
  parts: UrlParts,
): string | undefined =>
  openUrl(sealedUrlOf(url, parts), (sealed) => {
    const bytes = world.unlock(sealed, home)
    return bytes && Buffer.from(bytes).toString('utf8')
  })
