/**
 * The artifact commands that transfer bytes. The other artifact commands are derived from the API
 * table.
 */
import type { Command } from 'commander'
import type { Shell } from '../shell.ts'
import { addGet } from './get.ts'
import { addPut } from './put.ts'

/** Adds `baton artifact` with `put` and `get` to a program. */
export function addArtifacts(program: Command, shell: Shell): void {
  const parent = program.command('artifact').description('Upload, list and download artifacts')
  addPut(parent, shell)
  addGet(parent, shell)
}
