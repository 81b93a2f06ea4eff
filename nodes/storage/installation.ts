/**
 * The identity of an installation: its organization, its `default` project, its owner key and the
 * secret for seals, derived ids and encryption. The first node creates the identity. Every other
 * node and every later start reads it.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { World } from '../../gateway/ports.ts'
import { isRefusal } from '../../protocol/errors.ts'
import { makeId } from '../../protocol/ids.ts'
import type { Registry } from '../host/ports.ts'
import { StartFault } from '../process/fault.ts'
import { privateFolder, writePrivate } from './private.ts'

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

/** Returns a new owner key. */
export const newOwnerKey = (prefix: string): string =>
  `${prefix}_${randomBytes(24).toString('base64url').replace(/[-_]/g, 'x')}`

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

/**
 * Returns the path of the owner-key file of a data folder. `holds` states whether the file contains
 * the key of this installation, another key, or no readable key. After a restore into a folder that
 * was in use, for example, it contains another key.
 */
export function ownerKeyFile(
  data: string,
  { root_hash }: Pick<Installation, 'root_hash'>,
): { readonly file: string; readonly holds: 'the key' | 'another key' | 'nothing' } {
  const file = resolve(join(data, 'root.key'))
  try {
    const key = readFileSync(file, 'utf8').trim()
    return { file, holds: hash(key) === root_hash ? 'the key' : 'another key' }
  } catch {
    return { file, holds: 'nothing' }
  }
}

/**
 * Reads the installation, or creates it.
 * @param options `rootKey` is the owner key to use. When absent, a key is generated and stored
 *   under `data`.
 */
export async function install(
  registry: Registry,
  options: { rootKey: string | undefined; keyPrefix: string; data: string },
): Promise<Installed> {
  const found = await registry.get('installation')
  if (found) return JSON.parse(found.value) as Installation
  const id = (prefix: 'organization' | 'project' | 'key') =>
    makeId(prefix, Date.now(), randomBytes(10))
  const raw = options.rootKey ?? newOwnerKey(options.keyPrefix)
  const made: Installation = {
    organization: id('organization'),
    project: id('project'),
    root_key_id: id('key'),
    secret: randomBytes(32).toString('hex'),
    root_hash: hash(raw),
    root_prefix: raw.slice(0, 8),
  }
  const file = resolve(join(options.data, 'root.key'))
  if (options.rootKey === undefined) {
    // The key is on disk before the installation exists, because an installation whose key is lost
    // could never be used.
    privateFolder(options.data)
    writePrivate(file, `${raw}\n`)
  }
  if ((await registry.put('installation', JSON.stringify(made), 0)) === undefined)
    return install(registry, options)
  return options.rootKey === undefined ? { ...made, generated: { key: raw, file } } : made
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
