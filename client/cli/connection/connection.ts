/**
 * Determines the server, the key and the project of a command. Invariants:
 * C1. Flags take precedence over the environment, the environment over the current profile, and the
 *     profile over the defaults. The server and the key of a profile selected by `--profile` or
 *     `BATON_PROFILE` take precedence over those of the environment.
 * C2. A key stored in a profile is sent only to the servers of that profile.
 * C3. The owner key of a data folder is sent only to this machine.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { type Client, type ClientOptions, client } from '../../client.ts'
import { type Environment, Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'
import { type Profile, profileOf, readProfiles } from './profiles.ts'

export interface Connection {
  readonly url: readonly string[]
  readonly key: string
  readonly project: string
}
/** A connection of a program that may need no key. */
type KeylessConnection = Omit<Connection, 'key'> & Partial<Pick<Connection, 'key'>>
export interface ConnectionFlags {
  readonly server?: string
  readonly key?: string
  readonly project?: string
  readonly profile?: string
}

/**
 * Names of the connection flags. The flag of an API field with one of these names gets the prefix
 * `field-`.
 */
export const connectionFlags: readonly string[] = ['server', 'key', 'project', 'profile']

/** Adds the flags `--server`, `--key`, `--project` and `--profile` to a command. */
export const connected = (command: Command): Command =>
  command
    .option(
      '--server <urls>',
      'address of the server, or several addresses, comma-separated; ' +
        'by default BATON_URL, or http://127.0.0.1:8080 with the port of BATON_PORT',
    )
    .option(
      '--key <key>',
      'API key; by default BATON_KEY, or the owner key of a server started here',
    )
    .option('--project <handle>', 'project; by default BATON_PROJECT, or the project named default')
    .option(
      '--profile <name>',
      'stored connection to use; by default BATON_PROFILE (see: baton profile)',
    )

/** Returns the paths in the data folder where the owner key can be stored, in search order. */
export const keyFiles = (env: Environment): string[] => {
  const data = env['BATON_DATA'] || '.baton'
  return [join(data, 'root.key'), join(data, 'cluster', 'root.key')]
}

/** Whether an address refers to this machine. */
export const isLoopback = (url: string): boolean => LOOPBACK.test(url)
const LOOPBACK = /^https?:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?(\/|$)/i
/**
 * Splits a comma-separated list of addresses and removes trailing slashes.
 * @throws Mistake if an address is neither an HTTP nor an HTTPS address, or the list is empty.
 */
export function addressesOf(text: string): string[] {
  const urls = text
    .split(',')
    .map((address) => address.trim().replace(/\/$/, ''))
    .filter((address) => address !== '')
  const wrong = urls.find((address) => !/^https?:\/\/[^/]/.test(address))
  if (wrong !== undefined || urls.length === 0)
    throw new Mistake(
      `The server must be an address such as http://127.0.0.1:8080, not ${JSON.stringify(wrong ?? '')}.`,
    )
  return urls
}

/**
 * Returns the profile that a flag or the environment selects, otherwise the current profile. The
 * current profile is not used if `--server` or `BATON_URL` contains a server that is not in the
 * profile, or if only `BATON_PORT` is set.
 * @throws Mistake if the named profile does not exist, or an address is invalid.
 */
function profileFor(
  { profile, server }: ConnectionFlags,
  env: Environment,
): { readonly named: boolean; readonly profile: Profile } | undefined {
  const name = profile ?? (env['BATON_PROFILE'] || undefined)
  if (name !== undefined) return { named: true, profile: profileOf(env, name) }
  const { current, profiles } = readProfiles(env)
  const stored = current === undefined ? undefined : profiles[current]
  if (!stored) return undefined
  const given = server ?? (env['BATON_URL'] || undefined)
  const same =
    given === undefined
      ? !env['BATON_PORT']
      : addressesOf(given).every((url) => addressesOf(stored.server).includes(url))
  return same ? { named: false, profile: stored } : undefined
}

/** Returns the server from the environment: `BATON_URL`, else port `BATON_PORT` of this machine. */
export const serverOf = (env: Environment): string =>
  env['BATON_URL'] || `http://127.0.0.1:${env['BATON_PORT'] || '8080'}`

/**
 * Determines the connection from flags, environment, profiles and data folder.
 * @throws Mistake if there is no readable key, the named profile does not exist, or an address is
 * invalid.
 */
export function connectionOf(flags: ConnectionFlags, env: Environment): Connection {
  const { url, key, project } = keylessConnectionOf(flags, env)
  if (key === undefined)
    throw new Mistake(
      url.every((address) => isLoopback(address))
        ? 'No API key found: pass --key, set BATON_KEY, ' +
            `or run this command where a server stores its owner key (${keyFiles(env)[0]}). ` +
            'Start a server with: npm start'
        : `No API key found for ${url.join(', ')}: pass --key, set BATON_KEY, ` +
            `or store a key with: baton profile set <name> --server ${url.join(',')} --key <key>`,
    )
  return { url, key, project }
}

/**
 * Determines the connection of a worker. It has no key if none is found and all servers are on this
 * machine, because such a server can accept workers without a key.
 * @throws the same errors as `connectionOf`, but for a missing key only if a server is elsewhere.
 */
export function workerConnectionOf(flags: ConnectionFlags, env: Environment): KeylessConnection {
  const found = keylessConnectionOf(flags, env)
  return found.url.every((address) => isLoopback(address)) ? found : connectionOf(flags, env)
}

function keylessConnectionOf(flags: ConnectionFlags, env: Environment): KeylessConnection {
  const chosen = profileFor(flags, env)
  const url = addressesOf(
    flags.server ??
      (chosen?.named || !env['BATON_URL'] ? chosen?.profile.server : undefined) ??
      serverOf(env),
  )
  const stored = chosen?.profile
  const profileKey =
    stored && url.every((address) => addressesOf(stored.server).includes(address))
      ? stored.key
      : undefined
  const key =
    flags.key ??
    (chosen?.named ? profileKey : undefined) ??
    (env['BATON_KEY'] || undefined) ??
    profileKey ??
    (url.every((address) => isLoopback(address))
      ? (ownerKey(env) ?? (env['BATON_ROOT_KEY'] || undefined))
      : undefined)
  return {
    url,
    ...(key && { key }),
    project: flags.project ?? (env['BATON_PROJECT'] || stored?.project || 'default'),
  }
}

/**
 * Checks that the service responds, before a command follows a stream. A stream is requested again
 * and again, so the command would neither end nor explain a wrong address.
 * @throws BatonError if the service refuses the request or does not respond.
 */
export async function requireService(baton: Client): Promise<void> {
  await baton.project.list({ limit: 1 })
}

function ownerKey(env: Environment): string | undefined {
  const file = keyFiles(env).find((name) => existsSync(name))
  if (file === undefined) return undefined
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new Mistake(
      `The owner key ${file} cannot be read (${(error as NodeJS.ErrnoException).code}): ` +
        'pass --key, or run this command as the user who started the server.',
    )
  }
}

/** Creates a client for the connection that a command's flags select. */
export const clientFor = (command: Command, env: Environment): Client =>
  client(connectionOf(command.optsWithGlobals(), env))

/**
 * Maximum number of attempts per request of a long command after the service has answered it. They
 * take about a minute, which is longer than a restart of the service.
 */
const RECONNECT_TRIES = 20
/**
 * Returns the options of a client for a command that sends many requests, or a large one: it
 * outlasts a restart of the service, and says that it waits.
 */
export const outlastingRestarts = ({
  note,
}: Pick<Shell, 'note'>): Pick<ClientOptions, 'reconnectTries' | 'onUnavailable'> => ({
  reconnectTries: RECONNECT_TRIES,
  onUnavailable: ({ message }) => note(`(${message.replace(/\.$/, '')}; trying again)`),
})
/** Creates a client like `clientFor`, for a command that sends many requests, or a large one. */
export const longClientFor = (command: Command, shell: Shell): Client =>
  client({ ...connectionOf(command.optsWithGlobals(), shell.env), ...outlastingRestarts(shell) })
