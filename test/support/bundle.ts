/** Bundles programs of the tests that run as separate processes. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { sourceArguments } from '../../nodes/commands/child.ts'

interface Bundling {
  readonly bundleTests: (
    root: string,
    files: readonly string[],
  ) => Promise<{ folder: string } | undefined>
  readonly bundledTest: (folder: string, file: string) => string
}
const { bundleTests, bundledTest } = (await import(
  '../../nodes/boot/test-bundle.mjs' as string
)) as Bundling

/** A program that can be started. */
interface Program {
  /** The arguments with which Node.js runs the program. */
  readonly args: readonly string[]
  /** Deletes the bundle. Afterwards, the program can no longer be started. */
  remove(): void
}
/**
 * Bundles a program. If it cannot be bundled, the returned program runs from its source. A bundled
 * program starts with a third of the processor time.
 * @param root folder of the project.
 * @param file path of the program, relative to the project.
 */
export async function bundleProgram(root: string, file: string): Promise<Program> {
  const bundle = await bundleTests(root, [file])
  return bundle === undefined
    ? { args: sourceArguments(join(root, file)), remove: () => {} }
    : {
        args: [bundledTest(bundle.folder, file)],
        remove: () => rmSync(bundle.folder, { recursive: true, force: true }),
      }
}
