/**
 * Bundles the program when its sources have changed. nodes/main.ts and its static imports become
 * one JavaScript file, and its dynamic imports become separate files. Each worker thread (views,
 * conversions, e-mail) gets one file.
 *
 * A process takes 3.5 s of processor time to load the sources one by one, and 0.6 s to load the
 * bundle (two cores, Node 20, 2026-11-25). With the bundle, a process that is restarted after a
 * fault is ready sooner. Its start also leaves more processor time to the processes that took over
 * its work.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const SOURCES = ['nodes', 'actors', 'protocol', 'gateway', 'views', 'client']
/**
 * Age in milliseconds above which an old bundle is deleted. A running process may still need a
 * younger bundle.
 */
const MAX_AGE_MS = 7 * 86_400_000

/**
 * Returns a hash of everything that the bundle depends on: the sources, the project's folder, the
 * packages, the TypeScript configuration and the release of Node.js.
 * @param {string} root
 */
function fingerprint(root) {
  const hash = createHash('sha256').update(`${root}\n${process.version}\n`)
  const add = (/** @type {string} */ path) => {
    const { size, mtimeMs } = statSync(path)
    hash.update(`${path} ${size} ${mtimeMs}\n`)
  }
  for (const folder of SOURCES)
    for (const name of readdirSync(join(root, folder), {
      recursive: true,
      encoding: 'utf8',
    }).sort())
      if (name.endsWith('.ts') || name.endsWith('.mjs')) add(join(root, folder, name))
  for (const name of ['package-lock.json', 'tsconfig.json']) add(join(root, name))
  return hash.digest('hex').slice(0, 24)
}

/**
 * Packages that are not bundled, because they contain files other than JavaScript, or locate their
 * own files at run time.
 */
const UNBUNDLED = [
  '@lydell/node-pty',
  '@oxc-node/core',
  'better-sqlite3',
  'esbuild',
  'mailauth',
  'mailparser',
  'pino',
  'smtp-server',
  'sqlite-vec',
  'swagger-ui-dist',
  'uWebSockets.js',
]

/**
 * Preserves the URL and folder of each source, because sources locate other files relative to
 * themselves, not to the bundle.
 * @type {import('esbuild').Plugin}
 */
const sourceLocations = {
  name: 'source locations',
  setup: ({ onLoad }) =>
    void onLoad({ filter: /\.(ts|[cm]?js)$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
      const here = text.includes('import.meta.')
        ? `const url$ = ${JSON.stringify(pathToFileURL(path).href)}, folder$ = ${JSON.stringify(dirname(path))};`
        : ''
      return { loader: path.endsWith('.ts') ? 'ts' : 'js', contents: here + text }
    }),
}

/**
 * Returns the esbuild options for the code of this project.
 * @param {string} program path of the bundle of the program
 */
export const optionsOf = (program) =>
  /** @satisfies {import('esbuild').BuildOptions} */ ({
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: UNBUNDLED,
    sourcemap: true,
    sourcesContent: false,
    define: {
      'import.meta.url': 'url$',
      'import.meta.dirname': 'folder$',
      // Sources derive the path of a thread's bundle from this path: the bundle is in the same
      // folder, and its name begins with the name of the program's bundle.
      'import.meta.filename': JSON.stringify(program),
    },
    plugins: [sourceLocations],
    logLevel: 'error',
    // Bundled CommonJS packages call `require` for modules of Node.js, so the bundle defines it.
    banner: {
      js: "import { createRequire as require$ } from 'node:module'; const require = require$(import.meta.url);",
    },
  })

/**
 * @param {string} root
 * @param {string} file
 */
async function build(root, file) {
  const { build } = await import('esbuild')
  const name = basename(file, '.mjs')
  const options = { ...optionsOf(file), outdir: dirname(file), write: /** @type {const} */ (false) }
  const built = await Promise.all([
    // Half of the program is imported dynamically and gets separate files. A process that does not
    // load these files needs only half of the processor time to start.
    build({
      ...options,
      entryPoints: [{ in: join(root, 'nodes/main.ts'), out: name }],
      splitting: true,
      chunkNames: `${name}.[name]-[hash]`,
    }),
    build({
      ...options,
      entryPoints: [
        { in: join(root, 'nodes/roles/view-thread.ts'), out: `${name}.views` },
        { in: join(root, 'nodes/executor/documents/thread.ts'), out: `${name}.documents` },
        { in: join(root, 'nodes/mail/thread.ts'), out: `${name}.mail` },
      ],
    }),
  ])
  const outputFiles = built.flatMap((one) => one.outputFiles)
  // The files are written in descending order of the length of their names. The bundle has the
  // shortest name, so it is last, and a process that finds the bundle also finds the other files.
  for (const { path, contents } of outputFiles.sort((a, b) => b.path.length - a.path.length)) {
    writeFileSync(`${path}.${process.pid}`, contents)
    renameSync(`${path}.${process.pid}`, path)
  }
}

/**
 * The arguments of V8 for garbage collection. Semi-spaces of up to 32 MiB: in larger semi-spaces,
 * the collector copies fewer of the objects of pending commits. No pretenuring: V8 would allocate
 * the objects of some literals in the old generation, because many of them survive a collection.
 * They are part of commands in progress and are soon garbage, but only full collections free them.
 * Until then, they keep younger objects in memory (bench/HISTORY.md). An initial old generation of
 * 64 MiB: a gateway keeps 26 MiB alive, and V8 would otherwise begin a full collection at 35 MiB.
 */
export const MEMORY = [
  '--max-semi-space-size=32',
  '--initial-old-space-size=64',
  '--no-allocation-site-pretenuring',
]
/** The argument that makes node show source positions in the stack traces of a bundle. */
const SOURCE_MAPS = `--import=${new URL('source-maps.mjs', import.meta.url).href}`
/**
 * Returns the Node.js arguments that run a TypeScript file without bundling it.
 * @param {string} file
 * @param {string} loader module that loads TypeScript
 * @returns {string[]}
 */
export const sourceOf = (file, loader) => [...MEMORY, `--import=${loader}`, file]

/**
 * Returns the path of the bundle of the current sources, whether or not the bundle exists.
 * @param {string} root folder of the project
 */
export const bundleOf = (root) =>
  join(resolve(root), 'node_modules/.cache/baton', `${fingerprint(resolve(root))}.mjs`)

/**
 * Returns the node arguments that start the program. The program's own arguments follow them. If
 * the bundle does not exist, a separate process builds it first. If the build fails, the arguments
 * load the sources directly.
 * @param {string} root folder of the project
 * @param {string} loader module that loads TypeScript
 * @returns {string[]}
 */
export function programOf(root, loader) {
  root = resolve(root)
  const file = bundleOf(root)
  const folder = dirname(file)
  const made = [...MEMORY, SOURCE_MAPS, file]
  if (existsSync(file)) return made
  try {
    mkdirSync(folder, { recursive: true })
    for (const name of readdirSync(folder))
      if (Date.now() - statSync(join(folder, name)).mtimeMs > MAX_AGE_MS)
        rmSync(join(folder, name), { force: true })
    spawnSync(process.execPath, [fileURLToPath(import.meta.url), root, file], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  } catch {
    // The folder is not writable. The program is then loaded from its sources.
  }
  return existsSync(file) ? made : sourceOf(join(root, 'nodes/main.ts'), loader)
}

const [, started, ...wanted] = process.argv
if (started === fileURLToPath(import.meta.url)) await build(wanted[0] ?? '', wanted[1] ?? '')
