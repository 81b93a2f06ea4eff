/**
 * Loads and opens the parts of a node that accept connections from outside. Only nodes that need a
 * part load its modules.
 */
import type { Directory } from '../../gateway/directory.ts'
import type { World } from '../../gateway/ports.ts'
import type { Config } from '../config.ts'
import { StartFault } from '../process/fault.ts'

/**
 * Maximum size of the head of a request in bytes: its first line and its headers. 16 KiB is also
 * the limit of Node.js. The default of uWebSockets.js is 4 KiB, which cookies of other applications
 * on the same host exceed. Its builds for Node 20 only apply it to heads that arrive in parts.
 */
const MAX_HEAD = 16_384

/**
 * Starts the e-mail listener. Loading its packages takes a quarter of the processor time of a
 * node's start.
 */
export async function receiveMail(settings: NonNullable<Config['mail']>, world: World) {
  const { startMail } = await import('../mail/start.ts')
  return startMail(world, settings)
}

/**
 * Loads the gateway with uWebSockets.js, its HTTP server, which consists of compiled files for
 * certain versions of Node.js and of the C library.
 * @param load imports the module.
 * @throws StartFault with a remedy when there is no file for this platform.
 */
export async function loadGateway(
  load = () => import('../../gateway/server.ts'),
): Promise<typeof import('../../gateway/server.ts')> {
  // uWebSockets.js reads the limit once, when it is loaded.
  process.env['UWS_HTTP_MAX_HEADERS_SIZE'] ??= String(MAX_HEAD)
  try {
    return await load()
  } catch (error) {
    const { message } = error as Error
    if (!/uWS\.js|\.node\b/.test(message)) throw error
    const { platform, arch, versions } = process
    throw new StartFault(
      `uWebSockets.js, the HTTP server of gateways, cannot be loaded by Node ${versions.node} ` +
        `on ${platform} ${arch}: ${message.trim().split('\n').at(-1)}\n` +
        'Use Node 20 (from 20.19), 22 or 24. On Linux, Node 20 needs glibc 2.27, ' +
        'and Node 22 and 24 need glibc 2.38 (Debian 13, Ubuntu 24.04, or newer).',
    )
  }
}

/** Creates the gateway. */
export async function openGateway(world: World, directory: Directory) {
  const { createGateway } = await loadGateway()
  const { CHAT } = await import('../../gateway/pages/chat.ts')
  const { browserModules } = await import('../browser.ts')
  const { loadConsole } = await import('../console.ts')
  return createGateway(world, directory, { modules: browserModules(CHAT), console: loadConsole })
}
