/**
 * `baton login` and `baton logout`. Signing in uses a device code (RFC 8628): a user approves the
 * request in a browser. The resulting token is stored in a profile and sent only to the servers of
 * that profile.
 */
import { hostname, userInfo } from 'node:os'
import type { Command } from 'commander'
import { DEVICE_GRANT, unauthenticated } from '../../../protocol/access/unauthenticated-rows.ts'
import { routeOf } from '../../../protocol/contract.ts'
import { client } from '../../client.ts'
import { BatonError, unreachableError } from '../../errors.ts'
import { type Environment, Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'
import { addressesOf, serverOf } from './connection.ts'
import { type Profile, profileOf, readProfiles, saveProfile, writeProfiles } from './profiles.ts'

/** The external dependencies of the commands: HTTP requests and timed pauses. */
export interface LoginWorld {
  readonly fetch: typeof fetch
  readonly pause: (ms: number) => Promise<void>
}
const realWorld: LoginWorld = {
  fetch: (...given) => fetch(...given),
  pause: (ms) => new Promise((done) => setTimeout(done, ms)),
}

/**
 * Milliseconds added to the polling interval after each `slow_down` (RFC 8628, section 3.5) and
 * after each temporary failure.
 */
const SLOW_DOWN_MS = 5000
const DEFAULT_PROFILE = 'default'
/** Maximum length of a label in characters; longer labels are truncated. */
const MAX_LABEL_LENGTH = 100

interface LoginFlags {
  readonly server?: string
  readonly profile?: string
  readonly project?: string
  readonly label?: string
}

/** Adds `baton login` and `baton logout` to a program. */
export function addLogin(program: Command, shell: Shell, world: LoginWorld = realWorld): void {
  const login = program
    .command('login')
    .description(
      'Sign in as a person: approve the device in a browser, and store the token in a profile',
    )
    .option(
      '--server <url>',
      'address of the server; by default that of the profile, BATON_URL, or http://127.0.0.1:8080',
    )
    .option(
      '--project <handle>',
      'project to sign in to; by default the project of the person who approves',
    )
    .option(
      '--profile <name>',
      'profile to store the token in; by default BATON_PROFILE, or the profile named default',
    )
    .option('--label <text>', 'label of the token; by default the user and host name')
    .addHelpText(
      'after',
      '\nExample:\n  $ baton login --server https://baton.example.org --profile work\n' +
        'The profile becomes the current profile.\n',
    )
  login.action(shell.guarded(async () => signIn(login.opts<LoginFlags>(), shell, world)))
  const logout = program
    .command('logout')
    .description('Revoke the token of a profile, and remove the profile')
    .option('--profile <name>', 'profile; by default BATON_PROFILE, or the current profile')
    .addHelpText('after', '\nExample:\n  $ baton logout --profile work\n')
  logout.action(shell.guarded(async () => signOut(logout.opts<LoginFlags>(), shell, world)))
}

const named = (env: Environment, { profile }: LoginFlags): string | undefined =>
  profile ?? (env['BATON_PROFILE'] || undefined)

async function signIn(
  flags: LoginFlags,
  { env, note }: Shell,
  { fetch, pause }: LoginWorld,
): Promise<void> {
  const name = named(env, flags) ?? DEFAULT_PROFILE
  const { profiles } = readProfiles(env)
  const before = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  const server = flags.server ?? before?.server ?? serverOf(env)
  const [url = ''] = addressesOf(server)
  const label = (flags.label ?? defaultLabel()).slice(0, MAX_LABEL_LENGTH)
  const code = await post(fetch, url, 'device.code', {
    label,
    client: 'baton',
    client_os: process.platform,
    client_arch: process.arch,
    ...(flags.project !== undefined && { requested_project_handle: flags.project }),
  })
  const page = textIn(code, 'verification_uri_complete') || textIn(code, 'verification_uri')
  const user_code = textIn(code, 'user_code')
  note(
    `Open ${new URL(page, url).href}\nand approve the device with the code ${user_code}. ` +
      'Waiting; press Ctrl-C to stop.',
  )
  let interval = numberIn(code, 'interval', 5) * 1000
  let left = numberIn(code, 'expires_in', 600) * 1000
  const request = { grant_type: DEVICE_GRANT, device_code: textIn(code, 'device_code') }
  for (; left > 0; left -= interval) {
    await pause(interval)
    const answer = await post(fetch, url, 'device.token', request).catch(unreachable)
    const token = textIn(answer, 'access_token')
    const error = textIn(answer, 'error')
    if (token !== '') {
      const project = textIn(answer, 'project_handle')
      const profile: Profile = { server, key: token, ...(project !== '' && { project }) }
      saveProfile(env, name, profile, { use: true })
      note(`Signed in to ${project || server}; the token is stored in the profile ${name}.`)
      return
    }
    if (error === 'slow_down' || error === 'temporarily_unavailable') interval += SLOW_DOWN_MS
    else if (error !== 'authorization_pending')
      throw new Mistake(
        `Sign-in failed: ${textIn(answer, 'error_description') || error || 'the response is invalid'}`,
      )
  }
  throw new Mistake(
    'Sign-in failed: the code expired before it was approved. Run `baton login` again.',
  )
}
/**
 * Converts the error of an unreachable server to the response `temporarily_unavailable`, so that
 * polling continues at a longer interval.
 */
function unreachable(error: unknown): Answer {
  if (error instanceof BatonError) return { error: 'temporarily_unavailable' }
  throw error
}

/**
 * Revokes the token of a profile, and removes the profile. If the server no longer accepts the
 * token, the profile is removed anyway.
 */
async function signOut(
  flags: LoginFlags,
  { env, note }: Shell,
  { fetch, pause }: LoginWorld,
): Promise<void> {
  const name = named(env, flags) ?? readProfiles(env).current
  if (name === undefined)
    throw new Mistake('There is no current profile; specify one with --profile.')
  const { server, key, project } = profileOf(env, name)
  if (key === undefined) throw new Mistake(`The profile ${name} has no token.`)
  const baton = client({
    url: addressesOf(server),
    key,
    fetch,
    pause,
    ...(project !== undefined && { project }),
  })
  try {
    const { credential } = await baton.me.get()
    if (credential.type !== 'cli_token')
      throw new Mistake(
        `The profile ${name} contains a service key, not a personal token. ` +
          'Revoke the key with "baton key revoke", and remove the profile with: ' +
          `baton profile remove ${name}`,
      )
    await baton.cli_credential.revoke({ token: credential.id })
  } catch (error) {
    // 401: the token was revoked elsewhere, or has expired.
    if (!(error instanceof BatonError && error.status === 401)) throw error
  }
  const { current, profiles } = readProfiles(env)
  const { [name]: _, ...rest } = profiles
  writeProfiles(env, {
    ...(current !== undefined && current !== name && { current }),
    profiles: rest,
  })
  note(`Signed out; the profile ${name} was removed.`)
}

function defaultLabel(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return hostname()
  }
}

type Answer = Readonly<Record<string, unknown>>
const textIn = (answer: Answer, name: string): string => {
  const value = answer[name]
  return typeof value === 'string' ? value : ''
}
const numberIn = (answer: Answer, name: string, otherwise: number): number => {
  const value = answer[name]
  return typeof value === 'number' && value >= 0 ? value : otherwise
}

/**
 * Sends a form and returns the response body. For `device.token`, this can be an error in the
 * format of RFC 6749.
 * @throws Mistake if the body is not JSON or no code was issued; BatonError if the server does not
 * respond.
 */
async function post(
  fetch: LoginWorld['fetch'],
  url: string,
  operation: 'device.code' | 'device.token',
  fields: Readonly<Record<string, string>>,
): Promise<Answer> {
  const { path } = routeOf(unauthenticated[operation])
  let response: Response
  try {
    response = await fetch(`${url}/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields).toString(),
    })
  } catch (error) {
    throw unreachableError(url, error)
  }
  const answer = (await response.json().catch(() => undefined)) as Answer | undefined
  if (typeof answer !== 'object' || answer === null)
    throw new Mistake(`${url} returned ${response.status} with a body that is not JSON.`)
  if (!response.ok && operation === 'device.code')
    throw new Mistake(
      `${url} returned no code: ${textIn(answer, 'error_description') || `it returned ${response.status}`}`,
    )
  return answer
}
