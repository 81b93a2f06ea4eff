/**
 * Loads and opens the parts of a node that accept connections from outside. Only nodes that need a
 * part load its modules.
 */
import type { Directory } from '../../gateway/directory.ts'
import type { World } from '../../gateway/ports.ts'
import type { Config } from '../config.ts'

/**
 * Starts the e-mail listener. Loading its packages takes a quarter of the processor time of a
 * node's start.
 */
export async function receiveMail(settings: NonNullable<Config['mail']>, world: World) {
  const { startMail } = await import('../mail/start.ts')
  return startMail(world, settings)
}

/** Creates the gateway. */
export async function openGateway(world: World, directory: Directory) {
  const { createGateway } = await import('../../gateway/server.ts')
  const { CHAT } = await import('../../gateway/pages/chat.ts')
  const { browserModules } = await import('../browser.ts')
  const { loadConsole } = await import('../console.ts')
  return createGateway(world, directory, { modules: browserModules(CHAT), console: loadConsole })
}
