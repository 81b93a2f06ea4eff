/**
 * Bundles test files, so that test processes need not load the sources one by one. Loading the
 * modules of the service takes a process 5 s of processor time from the sources, and 2.4 s from a
 * bundle (two cores, Node 20, 2026-11-25). Bundling all tests takes 8 s.
 *
 * Modules that several files share are in shared chunks, so a process has one instance of each.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { bundleOf, optionsOf } from './program.mjs'

/** Environment variable with the folder of the bundled tests, for test/together.mjs. */
export const BUNDLE_ENV = 'BATON_TEST_BUNDLE'
/**
 * Age in milliseconds above which the bundle of an earlier run is deleted. Only a run that was
 * killed leaves its bundle behind.
 */
const MAX_AGE_MS = 86_400_000

/**
 * Returns the path of a bundled test file.
 * @param {string} folder of the bundled tests
 * @param {string} file path of its source, relative to the project
 */
export const bundledTest = (folder, file) => join(folder, file.replace(/\.ts$/, '.mjs'))

/**
 * Returns a function that tells whether a bundled test file can load a package, directly or through
 * what it imports.
 * @param {string} root
 * @param {string} folder of the bundled tests
 * @param {import('esbuild').Metafile['outputs']} outputs
 * @returns {(file: string, name: string) => boolean}
 */
function packagesOf(root, folder, outputs) {
  return (file, name) => {
    const found = new Set([relative(root, bundledTest(folder, file))])
    // A set that grows during its iteration also returns its new members.
    for (const output of found)
      for (const { path } of outputs[output]?.imports ?? []) found.add(path)
    return found.has(name)
  }
}

/**
 * Bundles test files.
 * @param {string} root folder of the project
 * @param {readonly string[]} files paths relative to the project
 * @returns {Promise<{ folder: string, loads(file: string, name: string): boolean } | undefined>}
 *   the folder of the bundled tests, which the caller must delete, and whether a file can load a
 *   package; undefined if the tests cannot be bundled and must be run from their sources
 */
export async function bundleTests(root, files) {
  const all = join(root, 'node_modules/.cache/baton-tests')
  const folder = join(all, String(process.pid))
  try {
    mkdirSync(all, { recursive: true })
    for (const name of readdirSync(all))
      if (Date.now() - statSync(join(all, name)).mtimeMs > MAX_AGE_MS)
        rmSync(join(all, name), { recursive: true, force: true })
    const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const { build } = await import('esbuild')
    const options = optionsOf(bundleOf(root))
    const { metafile } = await build({
      ...options,
      external: [...options.external, ...Object.keys(devDependencies)],
      entryPoints: files.map((file) => join(root, file)),
      outdir: folder,
      outbase: root,
      splitting: true,
      absWorkingDir: root,
      metafile: true,
    })
    return { folder, loads: packagesOf(root, folder, metafile.outputs) }
  } catch (error) {
    process.stderr.write(
      `The tests run from their sources: ${/** @type {Error} */ (error).message}\n`,
    )
    rmSync(folder, { recursive: true, force: true })
    return undefined
  }
}
