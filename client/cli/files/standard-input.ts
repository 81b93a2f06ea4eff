/** Reads standard input. */
import { fstatSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { Mistake } from '../mistake.ts'

/**
 * Returns standard input.
 * @throws Mistake if it is a folder, which Node treats as an empty stream.
 */
export function standardInput(): Readable {
  if (fstatSync(0).isDirectory()) throw new Mistake('Standard input is a folder, not a file.')
  return process.stdin
}
