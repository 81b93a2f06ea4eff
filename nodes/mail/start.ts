/**
 * Starts the e-mail listener with the settings of a node: reads the TLS certificate and key, and
 * reports any error in one sentence.
 */
import { readFileSync } from 'node:fs'
import type { World } from '../../gateway/ports.ts'
import type { Config } from '../config.ts'
import { StartFault } from '../process/fault.ts'
import { listenForMail, type MailListener } from './listener.ts'
import { createMailReader } from './reader.ts'

/**
 * Starts listening for e-mail.
 * @throws StartFault when the listener cannot start or a file cannot be read.
 */
export async function startMail(
  world: World,
  { tls, dns, ...settings }: NonNullable<Config['mail']>,
): Promise<MailListener> {
  const files = tls && { cert: read(tls.cert), key: read(tls.key) }
  try {
    return await listenForMail(
      world,
      { ...settings, ...(files && { tls: files }) },
      createMailReader(settings.limit, dns, (ms, run) => world.later(ms, run)),
    )
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new StartFault(
      `E-mail cannot be received at ${settings.host}:${settings.port}: ` +
        `${code === 'EADDRINUSE' ? 'the port is in use; choose another with BATON_SMTP_PORT' : message}`,
    )
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new StartFault(
      `${file} cannot be read (${(error as NodeJS.ErrnoException).code}); ` +
        'check BATON_SMTP_TLS_CERT and BATON_SMTP_TLS_KEY',
    )
  }
}
