/** Creates the sign-in link that the first start of an installation prints for its operator. */
import { linkUrl, newSignInCode } from '../../gateway/auth/console/rows.ts'
import type { World } from '../../gateway/ports.ts'
import { isRefusal } from '../../protocol/errors.ts'

/**
 * Creates a link that signs a browser in with the rights of the owner key. Returns undefined if
 * someone has already signed in to the console. Also returns undefined if the link cannot be
 * created, because a node can start without it.
 * @param url address of the gateway, for the link.
 */
export async function firstSignInLink(
  world: Pick<World, 'ask' | 'command' | 'now' | 'node' | 'organization' | 'random' | 'hash'>,
  url: string,
): Promise<string | undefined> {
  const id = world.organization()
  const to = { project: id, kind: 'organization', id } as const
  if ((await world.ask(to, 'console_used', {})) !== false) return undefined
  const { code, hash } = newSignInCode(world)
  const outcome = await world.command({
    ...to,
    command_id: `sign-in-link:${hash}`,
    name: 'sign_in_link.create',
    input: { hash },
    origin: {
      at: world.now(),
      principal: { type: 'system', id: 'system' },
      credential: { type: 'internal', id: world.node },
    },
  })
  return isRefusal(outcome) ? undefined : linkUrl(url, code)
}
