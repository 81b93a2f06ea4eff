/** URLs as requests need them: values of a query were sealed by the gateway that received it. */
import type { World } from '../../gateway/ports.ts'
import { keptUrl, openUrl, type UrlParts } from '../../protocol/masked-url.ts'

/**
 * The URL with its values, or undefined when one cannot be opened.
 * @param home the project or organization that it belongs to.
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
