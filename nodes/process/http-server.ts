/** Checks at the start that this version of Node.js can load the HTTP server of gateways. */
import { StartFault } from './fault.ts'

/**
 * Loads uWebSockets.js, which consists of compiled files for certain versions of Node.js and of the
 * C library.
 * @param load imports the package.
 * @throws StartFault with a remedy when the package cannot be loaded.
 */
export async function requireHttpServer(
  load: () => Promise<unknown> = () => import('uWebSockets.js'),
): Promise<void> {
  try {
    await load()
  } catch (error) {
    const reason = (error as Error).message.trim().split('\n').at(-1) ?? ''
    throw new StartFault(
      `uWebSockets.js, the HTTP server of gateways, cannot be loaded by Node ${process.versions.node} ` +
        `on ${process.platform} ${process.arch}: ${reason}\n` +
        'Use Node 20 (from 20.19), 22 or 24. On Linux, Node 20 needs glibc 2.27, ' +
        'and Node 22 and 24 need glibc 2.38 (Debian 13, Ubuntu 24.04, or newer).',
    )
  }
}
