/**
 * Stores profiles, which are named connections (servers, key, project) of one user, in a file that
 * only this user can read. A profile's key is sent only to the servers of that profile.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Environment, Mistake } from '../mistake.ts'

/** A stored connection. `server` may contain several addresses, comma-separated. */
export interface Profile {
  readonly server: string
  readonly key?: string
  readonly project?: string
}
/** The content of the file: all profiles, and the name of the current one. */
export interface Profiles {
  readonly current?: string
  readonly profiles: Readonly<Record<string, Profile>>
}

/**
 * Returns the path of the file: `BATON_CONFIG`, else `profiles.json` in the configuration folder of
 * the XDG Base Directory Specification.
 */
export const profileFile = (env: Environment): string =>
  env['BATON_CONFIG'] ||
  join(
    env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'),
    'baton',
    'profiles.json',
  )

/**
 * Reads the stored profiles. Returns none if the file does not exist.
 * @throws Mistake if the file cannot be read or is invalid.
 */
export function readProfiles(env: Environment): Profiles {
  const file = profileFile(env)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { profiles: {} }
    throw new Mistake(`${file} cannot be read: ${(error as Error).message}`)
  }
  try {
    const { current, profiles = {} } = JSON.parse(text) as Partial<Profiles>
    const isValid = Object.values(profiles).every(({ server }) => typeof server === 'string')
    if (!isValid) throw new TypeError('a profile has no server')
    return { ...(current !== undefined && { current }), profiles }
  } catch {
    throw new Mistake(
      `${file} is not a valid file of profiles. Correct it, or delete it and add the profiles again.`,
    )
  }
}

/**
 * Replaces the stored profiles. The file has mode 0600. Its folder, if it must be created, has mode
 * 0700.
 */
export function writeProfiles(env: Environment, profiles: Profiles): void {
  const file = profileFile(env)
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 })
  chmodSync(draft, 0o600)
  renameSync(draft, file)
}

/**
 * Adds or replaces a profile. If there is no current profile, the new profile becomes the current
 * one.
 * @param options.use whether the profile becomes the current one in any case.
 */
export function saveProfile(
  env: Environment,
  name: string,
  profile: Profile,
  { use = false }: { readonly use?: boolean } = {},
): void {
  const { current, profiles } = readProfiles(env)
  writeProfiles(env, {
    current: use || current === undefined ? name : current,
    profiles: { ...profiles, [name]: profile },
  })
}

/**
 * Returns the profile with the given name.
 * @throws Mistake if no profile has this name. The message lists the known names.
 */
export function profileOf(env: Environment, name: string): Profile {
  const { profiles } = readProfiles(env)
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  if (profile) return profile
  const known = Object.keys(profiles)
  throw new Mistake(
    `There is no profile ${name}. ` +
      (known.length > 0
        ? `Available: ${known.join(', ')}.`
        : 'Add one with: baton profile set <name> --server <url> --key <key>'),
  )
}
