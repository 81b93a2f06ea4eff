/** `baton profile`: store, list, choose and remove connections. */
import type { Command } from 'commander'
import { Mistake } from '../mistake.ts'
import { type Format, formatted, printReply } from '../output.ts'
import type { Shell } from '../shell.ts'
import { addressesOf } from './connection.ts'
import {
  type Profile,
  profileFile,
  profileOf,
  readProfiles,
  saveProfile,
  writeProfiles,
} from './profiles.ts'

/** Returns the beginning of a key, by which people recognize it. */
const shownKey = (key: string): string => `${key.slice(0, 8)}…`

/** Returns a profile as programs read it, without its key. */
const profileRecord = (name: string, { server, key, project }: Profile, current: boolean) => ({
  name,
  current,
  server,
  project: project ?? 'default',
  ...(key !== undefined && { key_prefix: shownKey(key) }),
})

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
  const list = formatted(parent.command('list'))
    .description('Show the stored profiles, without their keys')
    .addHelpText('after', '\nExample:\n  $ baton profile list\n  $ baton profile list -o json\n')
  list.action(
    shell.guarded(async () => {
      const { current, profiles } = readProfiles(env)
      const { format } = list.opts<{ format?: Format }>()
      const none = `There are no profiles in ${profileFile(env)}.`
      if (format !== undefined) {
        const items = Object.entries(profiles).map(([name, profile]) =>
          profileRecord(name, profile, name === current),
        )
        return printReply(shell, { items }, format, none)
      }
      if (Object.keys(profiles).length === 0) note(none)
      for (const [name, { server, key, project }] of Object.entries(profiles))
        print(
          `${name === current ? '*' : ' '} ${name}  ${server}  ${project ?? 'default'}  ` +
            (key === undefined ? 'no key' : shownKey(key)),
        )
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
