/**
 * The identity of an installation: its organization, its `default` project, its owner key and the
 * secret for seals, derived ids and encryption. The first node creates the identity. Every other
 * node and every later start reads it.
 */
import { randomBytes } from 'node:crypto'
import type { World } from '../../gateway/ports.ts'
import { isRefusal } from '../../protocol/errors.ts'
import { makeId } from '../../protocol/ids.ts'
import type { Registry } from '../host/ports.ts'
import { RESTORING } from '../nats/server/provision.ts'
import { StartFault } from '../process/fault.ts'
import {
  dropOwnerKey,
  hashOwnerKey,
  keepOwnerKey,
  prepareOwnerKey,
  usedOwnerKeyFile,
} from './owner-key.ts'

export interface Installation {
  readonly organization: string
  readonly project: string
  readonly root_key_id: string
  /** The secret in hexadecimal, which is stored in the config bucket of the installation. */
  readonly secret: string
  readonly root_hash: string
  readonly root_prefix: string
}
/**
 * The installation, with the raw owner key if `install` created the installation and generated the
 * key.
 */
export interface Installed extends Installation {
  readonly generated?: { readonly key: string; readonly file: string }
}

/** How the owner key of a new installation is chosen. */
export interface OwnerKeyOptions {
  /** The key to use. When absent, a key is generated and stored under `data`. */
  readonly rootKey: string | undefined
  readonly keyPrefix: string
  readonly data: string
}

/**
 * Checks that the data folder contains no owner key when there is no installation yet. Such a key
 * belongs to an installation with another prefix or on other servers.
 * @throws StartFault when it contains one, unless `rootKey` is set.
 */
export async function requireOwnInstallation(
  registry: Registry,
  { rootKey, data }: OwnerKeyOptions,
): Promise<void> {
  const file = rootKey === undefined ? usedOwnerKeyFile(data) : undefined
  if (file === undefined || (await registry.get('installation'))) return
  // An interrupted restore is reported by `provision`.
  if (await registry.get(RESTORING)) return
  throw new StartFault(
    `The NATS servers contain no installation with this prefix, but ${file} contains the owner key ` +
      'of one: correct BATON_NATS_PREFIX, BATON_NATS or BATON_DATA. ' +
      'To create another installation, move the file elsewhere first.',
  )
}

/** Reads the installation, or creates it. */
export async function install(registry: Registry, options: OwnerKeyOptions): Promise<Installed> {
  const { rootKey, data } = options
  const found = await registry.get('installation')
  if (found) {
    const installation = JSON.parse(found.value) as Installation
    // An earlier start may have ended after it had created the installation.
    if (rootKey === undefined) keepOwnerKey(data, installation)
    return installation
  }
  await requireOwnInstallation(registry, options)
  const id = (prefix: 'organization' | 'project' | 'key') =>
    makeId(prefix, Date.now(), randomBytes(10))
  const raw = rootKey ?? prepareOwnerKey(data, options.keyPrefix)
  const made: Installation = {
    organization: id('organization'),
    project: id('project'),
    root_key_id: id('key'),
    secret: randomBytes(32).toString('hex'),
    root_hash: hashOwnerKey(raw),
    root_prefix: raw.slice(0, 8),
  }
  if ((await registry.put('installation', JSON.stringify(made), 0)) === undefined) {
    const other = await install(registry, options)
    if (rootKey === undefined && other.root_hash !== made.root_hash) dropOwnerKey(data, raw)
    return other
  }
  if (rootKey !== undefined) return made
  return { ...made, generated: { key: raw, file: keepOwnerKey(data, made, raw) } }
}

/**
 * Creates the organization, the `default` project and the owner key, unless they exist.
 * @throws Error when the command is not decided in time because its shard has no owner yet.
 * @throws StartFault when the command is refused for another reason, unless the journal accepts no
 *   writes.
 */
export async function initialise(world: World, installation: Installation): Promise<void> {
  const outcome = await world.command({
    project: installation.organization,
    kind: 'organization',
    id: installation.organization,
    command_id: 'install',
    name: 'organization.init',
    input: {
      name: 'default',
      project_id: installation.project,
      root_key: {
        id: installation.root_key_id,
        hash: installation.root_hash,
        key_prefix: installation.root_prefix,
      },
    },
    origin: {
      at: world.now(),
      principal: { type: 'system', id: 'system' },
      credential: { type: 'internal', id: world.node },
    },
  })
  // If the journal accepts no writes, the installation already exists. The node starts anyway,
  // because its data can still be read.
  if (isRefusal(outcome) && ['storage_full', 'journal_damaged'].includes(outcome.refused)) return
  if (isRefusal(outcome) && outcome.refused === 'service_unavailable')
    throw new Error('no node with the role "shards" answers')
  if (isRefusal(outcome))
    throw new StartFault(`The organization could not be created (${outcome.refused}).`)
}
