/** Restores URLs for requests. Their query values were sealed by the gateway that received them. */
import type { World } from '../../gateway/ports.ts'
import { keptUrl, openUrl, type UrlParts } from '../../protocol/masked-url.ts'

/**
 * The URL with its query values, or undefined when one of them cannot be decrypted.
 * @param home the project or organization that the URL belongs to.
 */
export const openedUrl = (
  world: Pick<World, 'unlock'>,
  home: string,
  url: string,
  parts: UrlParts,
): string | undefined =>
  openUrl(keptUrl(url, parts), (sealed) => {
    const bytes = world.unlock(sealed, home)
    return bytes && Buffer.from(bytes).toString('utf8')
  })
