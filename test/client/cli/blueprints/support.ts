/** Folders of blueprint files for tests. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Blueprint, requestOf } from '../../../../client/cli/blueprints/documents.ts'
import { FileFaults } from '../../../../client/cli/blueprints/located.ts'
import { readBlueprints } from '../../../../client/cli/blueprints/read.ts'

export interface Folder {
  readonly path: string
  readonly write: (name: string, text: string | Uint8Array) => string
  /** Deletes the files that were written, but not their folders. */
  readonly clear: () => void
}
export function folderFor(t: { teardown(run: () => void): void }): Folder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'baton-blueprints-')))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  const written = new Set<string>()
  return {
    path,
    write: (name, text) => {
      const file = join(path, name)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
      written.add(file)
      return file
    },
    clear: () => {
      for (const file of written) rmSync(file, { force: true })
      written.clear()
    },
  }
}

/** Reads a folder. Returns the requests, or the faults with paths relative to the folder. */
export function read(
  folder: Folder,
  env: Readonly<Record<string, string>> = {},
  overrides: Parameters<typeof readBlueprints>[2] = {},
) {
  try {
    const blueprints: Blueprint[] = readBlueprints([folder.path], env, overrides)
    return { requests: blueprints.map((one) => requestOf(one).request), faults: [] }
  } catch (error) {
    if (!(error instanceof FileFaults)) throw error
    return {
      requests: [],
      faults: error.message.split('\n').map((line) => line.replaceAll(`${folder.path}/`, '')),
    }
  }
}
