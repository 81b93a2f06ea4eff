/** Explains to the operator why this process cannot listen on a port. */
import { createServer } from 'node:net'
import { StartFault } from './fault.ts'

/** Determines why this process cannot listen on an address. Returns an error with the remedy. */
export const portFault = (host: string, port: number): Promise<StartFault> =>
  new Promise((told) => {
    const fault = (code: string | undefined): StartFault =>
      new StartFault(
        code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND'
          ? `${host} is not an address of this machine: set BATON_HOST to one of its addresses, or to 0.0.0.0 for all`
          : code === 'EACCES'
            ? `This user may not listen on port ${port}: choose a port of at least 1024 with BATON_PORT`
            : `Port ${port} of ${host} is in use, perhaps by another Baton: stop it, ` +
              'or choose another port with BATON_PORT or --port',
      )
    const probe = createServer()
    probe.once('error', ({ code }: NodeJS.ErrnoException) => told(fault(code)))
    probe.listen(port, host, () => void probe.close(() => told(fault(undefined))))
  })

/** The address at which this machine reaches a process that listens on all addresses. */
const LOCAL: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
/**
 * Returns the URL of a gateway that listens on a host and a port. A host that stands for all
 * addresses is not an address that people, browsers and containers can open, so the URL has the
 * loopback address.
 */
export function urlOf({ host }: { readonly host: string }, port: number): string {
  const name = LOCAL[host] ?? host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
