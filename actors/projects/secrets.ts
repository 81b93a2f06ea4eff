/**
 * Secrets of a project.
 *
 * Invariants: version numbers increase while a secret exists, even when old versions are dropped.
 * Stored values are sealed and never part of a reply to a client.
 */
import type {
  FoundSecret,
  Secret,
  SecretEvent,
  SecretMaterial,
  SecretWithVersions,
  secrets,
} from '../../protocol/access/secret-rows.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Cause, Decision } from '../actor.ts'
import type { ProjectOptions, ProjectState } from './state.ts'

type Rows = typeof secrets
/** Maximum number of secrets of a project, and of stored versions of each. */
const SECRET_LIMITS = { secrets: 200, versions: 10 } as const
const NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$/

/**
 * Stores the next version, unless the value equals the current one. The project never receives the
 * plain values: the gateway seals them and adds the names of the entries.
 */
export function putSecret(
  { brand }: ProjectOptions,
  { secrets: all }: ProjectState,
  {
    secret_name: name,
    material,
    names,
  }: {
    readonly secret_name: string
    readonly material: SecretMaterial
    readonly names: readonly string[]
  },
  { at }: Cause,
): Decision<SecretEvent, Secret> {
  if (!NAME.test(name) || name.startsWith(`${brand.toLowerCase()}/`))
    return refuseFields({
      field: 'secret_name',
      message: `must be up to 128 letters, digits, . _ / or -, and not begin with ${brand.toLowerCase()}/`,
      actual: name,
    })
  const known = getOwn(all, name)
  if (!known && Object.keys(all).length >= SECRET_LIMITS.secrets)
    return refuse(
      'conflict',
      { limit: SECRET_LIMITS.secrets },
      `A project has at most ${SECRET_LIMITS.secrets} secrets.`,
    )
  if (known?.versions[known.secret.version]?.digest === material.digest)
    return { events: [], reply: known.secret }
  const version = (known?.secret.version ?? 0) + 1
  const now = timestamp(at)
  const secret: Secret = {
    name,
    version,
    versions: [...(known?.secret.versions ?? []), version].slice(-SECRET_LIMITS.versions),
    entries: [...names],
    created_at: known?.secret.created_at ?? now,
    updated_at: now,
  }
  return { events: [{ type: 'secret.stored', id: name, secret, material }], reply: secret }
}

/** Deletes a secret with all its versions. */
export const deleteSecret = (
  { secrets: all }: ProjectState,
  { secret_name: id }: Input<Rows['secret.delete']>,
): Decision<SecretEvent, undefined> =>
  getOwn(all, id)
    ? { events: [{ type: 'secret.deleted', id }], reply: undefined }
    : refuse('not_found')

/** Reducers for the events of secrets. */
export const evolveSecrets = {
  'secret.stored': (
    state: ProjectState,
    { id, secret, material }: Extract<SecretEvent, { type: 'secret.stored' }>,
  ): ProjectState => {
    const before = getOwn(state.secrets, id)?.versions ?? {}
    const versions: Record<number, SecretMaterial> = {}
    for (const version of secret.versions) {
      const kept = version === secret.version ? material : before[version]
      if (kept) versions[version] = kept
    }
    state.secrets[id] = { secret, versions }
    return state
  },
  'secret.deleted': (state: ProjectState, { id }: { readonly id: string }): ProjectState => {
    delete state.secrets[id]
    return state
  },
}

/** Returns all secrets sorted by name, without their values. */
export const secretList = ({ secrets: all }: ProjectState): Secret[] =>
  Object.values(all)
    .map(({ secret }) => secret)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
/**
 * Returns the sealed value to which a reference (`<name>` or `<name>:<version>`) refers, with its
 * version. Returns null if there is no such value.
 */
export function secretOf(
  { secrets: all }: ProjectState,
  { ref }: { readonly ref: string },
): FoundSecret | null {
  const [, name = '', wanted] = /^(.*?)(?::(\d+))?$/.exec(ref) ?? []
  const kept: SecretWithVersions | undefined = getOwn(all, name)
  const version = wanted === undefined ? kept?.secret.version : Number(wanted)
  const found = version === undefined ? undefined : kept?.versions[version]
  return found && version !== undefined ? { sealed: found.sealed, version } : null
}
