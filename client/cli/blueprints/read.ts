/** Reads blueprints: finds their files, and parses, merges and checks the documents. */
import { readFileSync } from 'node:fs'
import { type Environment, Mistake } from '../mistake.ts'
import { blueprintFaults } from './check.ts'
import { type Blueprint, type FileDocument, mergeDocuments, type Overrides } from './documents.ts'
import { findFiles, textFile } from './find-files.ts'
import { type Fault, FileFaults } from './located.ts'
import { readDocuments, sourceOf } from './yaml.ts'

/**
 * Reads and checks blueprints.
 * @param paths values of the flags `-f`.
 * @throws FileFaults with all faults of the files; Mistake if a file cannot be read.
 */
export function readBlueprints(
  paths: readonly string[],
  env: Environment,
  overrides: Overrides = {},
  stdin: () => Uint8Array = () => readFileSync(0),
): Blueprint[] {
  const faults: Fault[] = []
  const documents: FileDocument[] = []
  for (const file of findFiles(paths, stdin)) {
    const { name, text, folder, root } = file
    const read = readDocuments(text, {
      source: sourceOf(name, text),
      env,
      file: (other) => textFile(file, other),
    })
    faults.push(...read.faults)
    documents.push(...read.documents.map((located) => ({ located, file: name, folder, root })))
  }
  // Merging incomplete documents would report misleading faults.
  if (faults.length > 0) throw new FileFaults(faults)
  const blueprints = mergeDocuments(documents, overrides, faults)
  faults.push(...blueprints.flatMap(blueprintFaults))
  if (faults.length > 0) throw new FileFaults(faults)
  if (blueprints.length === 0) throw new Mistake(`${paths.join(', ')} contains no blueprint.`)
  return blueprints
}
