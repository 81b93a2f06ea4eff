/**
 * Bundles a program of the tests that runs as a separate process. Its start from a bundle takes a
 * third of the processor time of a start from its sources.
 */
interface Bundling {
  readonly bundleTests: (root: string, files: readonly string[]) => Promise<string | undefined>
  readonly bundledTest: (folder: string, file: string) => string
}
/**
 * `bundleTests` returns the folder of the bundles, which the caller deletes, or undefined when the
 * files must run from their sources. `bundledTest` returns the path of the bundle of a file.
 */
export const { bundleTests, bundledTest } = (await import(
  '../../nodes/boot/test-bundle.mjs' as string
)) as Bundling
