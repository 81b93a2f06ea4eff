/** Whether an address could be sent to, said when it is configured. What matters is checked again whenever something is sent. */
import { AddressRefused, type Guard } from './guard.ts'

/** Milliseconds for looking up a name; an answer that comes later is not waited for. */
const LOOKUP_TIMEOUT_MS = 3000

/** A check of addresses: what is wrong with one, as the end of a sentence; undefined: nothing that is known now. */
export const createVet =
  (guard: Guard) =>
  async (url: string): Promise<string | undefined> => {
    const { hostname, protocol } = new URL(url)
    const plain =
      protocol !== 'https:'
        ? 'must begin with https://; plain http:// is only for networks that the operator allows'
        : undefined
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), LOOKUP_TIMEOUT_MS)
    })
    try {
      const addresses = await Promise.race([guard.check(hostname), late])
      return addresses?.every(({ allowed }) => allowed) ? undefined : plain
    } catch (error) {
      return error instanceof AddressRefused ? `may not be called: ${error.message}` : plain
    } finally {
      clearTimeout(timer)
    }
  }
