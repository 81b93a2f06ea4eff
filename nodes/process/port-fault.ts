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

/** Returns the URL of a gateway that listens on a host and a port. */
export const urlOf = ({ host }: { readonly host: string }, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`
