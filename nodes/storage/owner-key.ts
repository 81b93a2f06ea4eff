/**
 * The file of the owner key in a data folder. It exists only for the installation that the process
 * created. A new key is first stored beside it, because an installation whose key is lost could
 * never be used, and because another process may create the installation first. An existing key is
 * never overwritten: only its hash is stored elsewhere.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { privateFolder, writePrivate } from './private.ts'

/** Returns a new owner key. */
export const newOwnerKey = (prefix: string): string =>
  `${prefix}_${randomBytes(24).toString('base64url').replace(/[-_]/g, 'x')}`

/** Returns the hash by which an installation identifies its owner key. */
export const hashOwnerKey = (key: string): string => createHash('sha256').update(key).digest('hex')

const fileOf = (data: string): string => resolve(join(data, 'root.key'))
/** The file of a key whose installation may not exist yet. */
const newFileOf = (data: string): string => `${fileOf(data)}.new`

/** Returns the key in a file; undefined when the file is missing, empty or not readable. */
function keyIn(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined
  } catch {
    return undefined
  }
}
/** Whether a file exists and is not empty. A start that was killed may leave an empty file. */
const isWritten = (file: string): boolean =>
  (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0

/**
 * Returns the path of the owner-key file of a data folder. `holds` states whether the file contains
 * the key of this installation, another key, or no readable key. After a restore into a folder that
 * was in use, for example, it contains another key.
 */
export function ownerKeyFile(
  data: string,
  { root_hash }: { readonly root_hash: string },
): { readonly file: string; readonly holds: 'the key' | 'another key' | 'nothing' } {
  const file = fileOf(data)
  const key = keyIn(file)
  if (key === undefined) return { file, holds: 'nothing' }
  return { file, holds: hashOwnerKey(key) === root_hash ? 'the key' : 'another key' }
}

/** Returns the path of the owner-key file of a data folder, if the file is written. */
export function usedOwnerKeyFile(data: string): string | undefined {
  const file = fileOf(data)
  return isWritten(file) ? file : undefined
}

/** Returns the key for a new installation. A key that an interrupted start stored is used again. */
export function prepareOwnerKey(data: string, prefix: string): string {
  const file = newFileOf(data)
  const kept = keyIn(file)
  if (kept !== undefined) return kept
  const key = newOwnerKey(prefix)
  privateFolder(data)
  writePrivate(file, `${key}\n`)
  return key
}

/**
 * Stores the prepared key as the owner key, if it is the key of this installation and the folder
 * has no owner key. Returns the path of the file of the owner key.
 * @param prepared the key that `prepareOwnerKey` returned; by default, the key that it stored.
 */
export function keepOwnerKey(
  data: string,
  { root_hash }: { readonly root_hash: string },
  prepared = keyIn(newFileOf(data)),
): string {
  const file = fileOf(data)
  if (prepared === undefined || hashOwnerKey(prepared) !== root_hash) return file
  if (!isWritten(file)) writePrivate(file, `${prepared}\n`)
  if (keyIn(file) === prepared) rmSync(newFileOf(data), { force: true })
  return file
}

/** Deletes a prepared key that no installation uses. */
export function dropOwnerKey(data: string, prepared: string): void {
  const file = newFileOf(data)
  if (keyIn(file) === prepared) rmSync(file, { force: true })
}

/**
 * Returns a warning when the configured owner key is not the key with which the installation was
 * created. A start does not replace the owner key.
 */
export const ignoredOwnerKey = (
  rootKey: string | undefined,
  { root_hash }: { readonly root_hash: string },
): string | undefined =>
  rootKey === undefined || hashOwnerKey(rootKey) === root_hash
    ? undefined
    : 'BATON_ROOT_KEY is ignored: it applies only to the first start, which used another key. ' +
      'To replace that key, create another one with `npm run baton -- key create-organization ' +
      '--name owner --role Owner`, and revoke the old one with ' +
      '`npm run baton -- key revoke-organization <id>`.'
