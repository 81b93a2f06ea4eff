/** `baton profile`: store, list, choose and remove connections. */
import type { Command } from 'commander'
import { Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'
import { addressesOf } from './connection.ts'
import { profileFile, profileOf, readProfiles, saveProfile, writeProfiles } from './profiles.ts'

/** Adds `baton profile` and its subcommands to a program. */
export function addProfiles(program: Command, shell: Shell): void {
  const { env, print, note } = shell
  const parent = program
    .command('profile')
    .description('Store connections to servers by name: list, set, use, remove')
    .addHelpText(
      'after',
      '\nExample:\n  $ baton profile set work --server https://baton.example.org --key bat_… ' +
        '--use\n',
    )
  parent
    .command('list')
    .description('Show the stored profiles, without their keys')
    .addHelpText('after', '\nExample:\n  $ baton profile list\n')
    .action(
      shell.guarded(async () => {
        const { current, profiles } = readProfiles(env)
        const names = Object.keys(profiles)
        if (names.length === 0) note(`There are no profiles in ${profileFile(env)}.`)
        for (const name of names) {
          const { server, key, project } = profiles[name] ?? { server: '' }
          print(
            `${name === current ? '*' : ' '} ${name}  ${server}  ${project ?? 'default'}  ` +
              (key === undefined ? 'no key' : `${key.slice(0, 8)}…`),
          )
        }
      }),
    )
  const set = parent
    .command('set')
    .description('Add or change a profile')
    .argument('<name>')
    .option('--server <urls>', 'address of the server, or several addresses, comma-separated')
    .option('--key <key>', 'API key or personal token')
    .option('--project <handle>', 'project that commands use by default')
    .option('--use', 'make it the current profile')
    .addHelpText(
      'after',
      '\nExample:\n  $ baton profile set work --server https://baton.example.org --key bat_… ' +
        '--use\n',
    )
  set.action(
    shell.guarded(async (name: string) => {
      const { use, ...given } = set.opts<{
        server?: string
        key?: string
        project?: string
        use?: true
      }>()
      const { profiles } = readProfiles(env)
      const before = Object.hasOwn(profiles, name) ? profiles[name] : undefined
      const server = given.server ?? before?.server
      if (server === undefined) throw new Mistake(`A new profile requires --server.`)
      addressesOf(server)
      // A stored key is dropped when the server changes, because a key may be sent only to the
      // servers that it was stored for.
      const key = given.key ?? (server === before?.server ? before.key : undefined)
      const project = given.project ?? before?.project
      saveProfile(
        env,
        name,
        { server, ...(key !== undefined && { key }), ...(project !== undefined && { project }) },
        { use: use === true },
      )
      note(`Stored in ${profileFile(env)}.`)
    }),
  )
  parent
    .command('use')
    .description('Make a profile the current profile')
    .argument('<name>')
    .addHelpText('after', '\nExample:\n  $ baton profile use work\n')
    .action(
      shell.guarded(async (name: string) => {
        profileOf(env, name)
        writeProfiles(env, { ...readProfiles(env), current: name })
        note(`${name} is the current profile.`)
      }),
    )
  parent
    .command('remove')
    .description('Remove a profile and its key')
    .argument('<name>')
    .addHelpText('after', '\nExample:\n  $ baton profile remove work\n')
    .action(
      shell.guarded(async (name: string) => {
        profileOf(env, name)
        const { current, profiles } = readProfiles(env)
        const { [name]: _, ...rest } = profiles
        writeProfiles(env, {
          ...(current !== undefined && current !== name && { current }),
          profiles: rest,
        })
        note(`Removed ${name}.`)
      }),
    )
}
