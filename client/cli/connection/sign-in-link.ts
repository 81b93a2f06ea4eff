/** `baton sign-in-link`: prints a single-use link that signs in to the console. */
import type { Command } from 'commander'
import { client } from '../../client.ts'
import type { Shell } from '../shell.ts'
import { type ConnectionFlags, connected, connectionOf } from './connection.ts'

/** Adds `baton sign-in-link` to a program. */
export function addSignInLink(program: Command, shell: Shell): void {
  const command = connected(
    program
      .command('sign-in-link')
      .description(
        'Print a link that signs in to the console as the organization key; ' +
          'it is valid once, for an hour',
      ),
  ).addHelpText('after', '\nExample:\n  $ baton sign-in-link\n')
  command.action(
    shell.guarded(async () => {
      const connection = connectionOf(command.opts<ConnectionFlags>(), shell.env)
      const { url } = await client(connection).sign_in_link.create({})
      // A server without a configured address returns only a path.
      shell.print(url.startsWith('/') ? `${connection.url[0]}${url}` : url)
    }),
  )
}
