/** Checks a URL when it is configured. Its address is checked again before every request to it. */
import { watchdog } from '../../client/watchdog.ts'
import { AddressRefused, type Guard } from './guard.ts'

/** Milliseconds to wait for a name lookup. A later result is ignored. */
const LOOKUP_TIMEOUT_MS = 3000

/**
 * Creates a function that checks a URL. The function resolves with undefined if it finds no
 * problem, and otherwise with a description of the problem that completes a sentence.
 */
export const createVet =
  (guard: Guard) =>
  async (url: string): Promise<string | undefined> => {
    const { hostname, protocol } = new URL(url)
    const plain =
      protocol !== 'https:'
        ? 'must begin with https://; plain http:// is only for networks that the operator allows'
        : undefined
    const late = watchdog(LOOKUP_TIMEOUT_MS)
    try {
      const addresses = await guard.check(hostname, { owner: 'settings', signal: late.signal })
      return addresses.every(({ allowed }) => allowed) ? undefined : plain
    } catch (error) {
      return error instanceof AddressRefused ? `may not be called: ${error.message}` : plain
    } finally {
      late.stop()
    }
  }
