/**
 * Builds the console for browsers: the main script, the style sheet, the shared worker, and parts
 * that are loaded on demand. The name of every file contains a hash of its content. The files are
 * compressed once. A build is cached on disk and is repeated only when a source has changed.
 */
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
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { ConsoleFile, ConsoleFiles } from '../gateway/pages/console.ts'
import { api } from '../protocol/api.ts'
import type { Row } from '../protocol/contract.ts'
import { version } from './version.ts'

const root = dirname(import.meta.dirname)
const SOURCES = ['console', 'protocol', 'client']
/** Age in milliseconds above which an older build is deleted. */
const MAX_AGE_MS = 7 * 86_400_000
const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

/**
 * Returns the route and the inputs of each row, in the format that `console/api/routes.ts`
 * declares.
 */
export const embeddedRoutes = (): Readonly<Record<string, object>> =>
  Object.fromEntries(
    Object.entries<Row>(api).map(([name, { route, shape }]) => {
      const query = Object.keys(
        (shape.query as { properties?: object } | undefined)?.properties ?? {},
      )
      const include = Object.keys(shape.additions ?? {})
      return [
        name,
        {
          route,
          ...(shape.body && { body: true }),
          ...(shape.body && query.length > 0 && { query }),
          ...(include.length > 0 && { include }),
        },
      ]
    }),
  )

/**
 * Returns a hash of everything that a build depends on: the constants (with the endpoint table),
 * the size and modification time of each source, and package-lock.json.
 */
function fingerprint(defines: Readonly<Record<string, string>>): string {
  const hash = createHash('sha256').update(JSON.stringify(defines))
  for (const folder of SOURCES)
    for (const name of readdirSync(join(root, folder), {
      recursive: true,
      encoding: 'utf8',
    }).sort())
      if (/\.(tsx?|css|json)$/.test(name)) {
        const { size, mtimeMs } = statSync(join(root, folder, name))
        hash.update(`${folder}/${name} ${size} ${mtimeMs}\n`)
      }
  hash.update(readFileSync(join(root, 'package-lock.json')))
  return hash.digest('hex').slice(0, 24)
}

/** Builds the console into a folder that does not exist yet. */
async function build(folder: string, define: Readonly<Record<string, string>>): Promise<void> {
  const { build: bundle } = await import('esbuild')
  const making = `${folder}.${process.pid}`
  await bundle({
    absWorkingDir: root,
    entryPoints: {
      main: 'console/main.tsx',
      styles: 'console/styles.css',
      worker: 'console/live/worker.ts',
    },
    outdir: making,
    entryNames: '[name]-[hash]',
    chunkNames: 'part-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfig: join(root, 'console/tsconfig.json'),
    define,
    legalComments: 'none',
    logLevel: 'error',
  })
  const brotli = promisify(brotliCompress)
  const zip = promisify(gzip)
  for (const name of readdirSync(making)) {
    const bytes = readFileSync(join(making, name))
    const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }
    writeFileSync(join(making, `${name}.br`), await brotli(bytes, quality))
    writeFileSync(join(making, `${name}.gz`), await zip(bytes))
  }
  try {
    renameSync(making, folder)
  } catch (error) {
    // If the folder exists now, another process has finished the same build first.
    if (!existsSync(folder)) throw error
    rmSync(making, { recursive: true, force: true })
  }
}

/** Loads the files of a build, with their compressed forms, into memory. */
function read(folder: string): ConsoleFiles {
  const names = readdirSync(folder)
  const files = new Map<string, ConsoleFile>()
  for (const name of names) {
    const type = types[name.slice(name.lastIndexOf('.'))]
    if (!type) continue
    const file = join(folder, name)
    files.set(`/console/${name}`, {
      type,
      plain: readFileSync(file),
      br: readFileSync(`${file}.br`),
      gzip: readFileSync(`${file}.gz`),
    })
  }
  const entry = (prefix: string) =>
    `/console/${names.find((name) => name.startsWith(prefix) && types[name.slice(name.lastIndexOf('.'))])}`
  return { files, script: entry('main-'), style: entry('styles-'), worker: entry('worker-') }
}

/**
 * Returns the files of the console, and builds them if necessary. A build takes about a second.
 * @throws Error when the build fails, for example because of a syntax error.
 */
export async function loadConsole(): Promise<ConsoleFiles> {
  const define = {
    BATON_ROUTES: JSON.stringify(embeddedRoutes()),
    BATON_VERSION: JSON.stringify(version),
    // The page's content security policy forbids `eval`. Without this definition, a library that
    // only tests whether `eval` is allowed would violate the policy and cause a report.
    'globalThis.Function': 'undefined',
  }
  const all = join(root, 'node_modules/.cache/baton-console')
  mkdirSync(all, { recursive: true })
  const folder = join(all, fingerprint(define))
  if (!existsSync(folder)) {
    await build(folder, define)
    for (const name of readdirSync(all))
      if (name !== basename(folder) && Date.now() - statSync(join(all, name)).mtimeMs > MAX_AGE_MS)
        rmSync(join(all, name), { recursive: true, force: true })
  }
  return read(folder)
}
