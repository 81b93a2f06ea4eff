/** The data folder of a node. */
import { accessSync, constants } from 'node:fs'
import { resolve } from 'node:path'
import { StartFault } from '../process/fault.ts'
import { privateFolder } from './private.ts'

/**
 * Creates the data folder and checks that it is usable.
 * @throws StartFault when the folder cannot be created or accessed.
 */
export function ensureDataFolder(data: string): void {
  try {
    privateFolder(data)
    accessSync(data, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why =
      code === 'EEXIST' || code === 'ENOTDIR'
        ? 'a file is at this path'
        : code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
          ? 'this user may not write to it'
          : `it cannot be created (${code})`
    throw new StartFault(
      `The data folder ${resolve(data)} cannot be used: ${why}. Choose another with BATON_DATA or --data.`,
    )
  }
}
