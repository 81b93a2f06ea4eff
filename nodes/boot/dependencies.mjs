/**
 * Installs the npm packages when they are missing or differ from package-lock.json. A stamp in
 * node_modules records the installed lock file and the version of Node.js's binary interface. If the
 * stamp is missing or does not match, npm's own record of node_modules is compared with the lock
 * file, so that packages that were installed by hand are not installed again.
 *
 * Packages of C++ are compiled where no compiled file can be downloaded, which takes longer than
 * the rest of the installation. The tests therefore install the packages first and compile them
 * while tests that need no such package run.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Version of the binary interface of this Node.js, for which native packages are compiled. */
const ABI = process.versions.modules

/** @param {string} file */
const read = (file) => {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

/**
 * Compares npm's record of node_modules with package-lock.json. Returns `all` when all packages are
 * installed, `production` when only development packages are missing, and `stale` otherwise.
 * Optional packages depend on the platform and are ignored.
 * @param {Record<string, {version?: string, dev?: boolean, optional?: boolean,
 *   devOptional?: boolean, link?: boolean}>} locked
 * @param {Record<string, {version?: string}>} installed
 * @returns {'all' | 'production' | 'stale'}
 * @public
 */
export function compareLocks(locked, installed) {
  const missing = Object.entries(locked).filter(
    ([path, entry]) =>
      path !== '' && !entry.optional && !entry.link && installed[path]?.version !== entry.version,
  )
  if (missing.length === 0) return 'all'
  return missing.every(([, entry]) => entry.dev || entry.devOptional) ? 'production' : 'stale'
}

/**
 * Returns whether this Node.js can load a compiled file.
 * @param {string} file
 */
const loads = (file) => {
  try {
    process.dlopen({ exports: {} }, file)
    return true
  } catch {
    return false
  }
}

/**
 * Returns the installed packages whose native code is not compiled for this version of Node.js, for
 * example because an installation was interrupted or ignored the scripts of packages, or because
 * Node.js was replaced after the installation.
 * @param {string} root folder of the project
 * @param {Record<string, {hasInstallScript?: boolean}>} locked
 * @returns {string[]} folders relative to the project
 * @public
 */
export const uncompiledPackages = (root, locked) =>
  Object.keys(locked).filter((path) => {
    if (!locked[path]?.hasInstallScript || !existsSync(join(root, path, 'binding.gyp')))
      return false
    const release = join(root, path, 'build/Release')
    const files = existsSync(release) ? readdirSync(release) : []
    return !files.some((name) => name.endsWith('.node') && loads(join(release, name)))
  })

/**
 * Returns the command line of npm, with the npm that runs this process if there is one.
 * @param {readonly string[]} args
 * @returns {readonly [command: string, args: readonly string[]]}
 */
const npm = (args) => {
  const path = process.env['npm_execpath']
  return path?.endsWith('.js') ? [process.execPath, [path, ...args]] : ['npm', args]
}
/** @param {string} root */
const npmOptions = (root) => ({
  cwd: root,
  encoding: /** @type {const} */ ('utf8'),
  env: { ...process.env, NODE_ENV: '' },
})
const COMPILE = ['rebuild', '--loglevel=error']
/**
 * @param {string} output
 * @param {string} root
 */
const failure = (output, root) =>
  new Error(
    `${output}The packages could not be installed. ` +
      `Check the connection to the npm registry and run \`npm ci\` in ${root}.`,
  )

/**
 * Runs npm.
 * @param {string} root
 * @param {readonly string[]} args
 * @throws {Error} with the output of npm when it fails
 */
function runNpm(root, args) {
  const { status, error, stdout, stderr } = spawnSync(...npm(args), npmOptions(root))
  if (status !== 0)
    throw failure(`${stdout ?? ''}${stderr ?? ''}${error ? `${error.message}\n` : ''}`, root)
}

/**
 * Ensures that the packages are installed.
 * @param {string} root folder of the project
 * @param {object} options
 * @param {boolean} options.development whether development packages, such as those of tests, are
 *   needed
 * @param {boolean} [options.compile] whether native packages are compiled before this returns
 * @param {(line: string) => void} progress
 * @returns {{ packages: string[], compile(): Promise<void> } | undefined} the native packages that
 *   were not compiled, and a function that compiles them, which rejects with an Error when npm
 *   fails; undefined if all are compiled
 * @throws {Error} when node_modules is a link to a folder with other packages, or npm fails
 */
export function ensureDependencies(root, { development, compile = true }, progress) {
  const modules = join(root, 'node_modules')
  const stampFile = join(modules, '.baton-stamp')
  const lockFile = join(root, 'package-lock.json')
  const hash = createHash('sha256').update(readFileSync(lockFile)).digest('hex')

  const present = read(stampFile)
  if (present?.hash === hash && present.abi === ABI && (present.development || !development))
    return undefined
  const locked = read(lockFile)?.packages ?? {}
  const record = read(join(modules, '.package-lock.json'))?.packages
  const state = record ? compareLocks(locked, record) : 'stale'
  const isInstalled = state === 'all' || (state === 'production' && !development)
  const everything = isInstalled ? state === 'all' : development || existsSync(modules)
  const stamp = () =>
    writeFileSync(stampFile, JSON.stringify({ hash, abi: ABI, development: everything }))

  if (!isInstalled) {
    // npm would delete the packages in the folder to which the link points, which other projects
    // share.
    if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink())
      throw new Error(
        `${modules} is a link to a folder whose packages do not match package-lock.json. ` +
          'Remove the link and run this again, ' +
          'or run `npm ci` in the project that owns that folder.',
      )
    progress(
      `Installing packages (${existsSync(modules) ? 'package-lock.json changed' : 'first run'}; ` +
        'this takes a minute or two) …',
    )
    const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
    if (!everything) args.push('--omit=dev')
    if (!compile) args.push('--ignore-scripts')
    runNpm(root, args)
  }
  const uncompiled = uncompiledPackages(root, locked)
  if (uncompiled.length === 0) return void stamp()
  if (compile) {
    progress('Compiling packages …')
    runNpm(root, COMPILE)
    return void stamp()
  }
  return {
    packages: uncompiled.map((path) => path.replace('node_modules/', '')),
    compile: async () => {
      progress('Compiling packages …')
      const stdio = /** @type {const} */ (['ignore', 'pipe', 'pipe'])
      const child = spawn(...npm(COMPILE), { ...npmOptions(root), stdio })
      let output = ''
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (/** @type {string} */ text) => (output += text))
      const status = await new Promise((done) => {
        child.on('error', (error) => {
          output += `${error.message}\n`
          done(undefined)
        })
        child.on('close', done)
      })
      if (status !== 0) throw failure(output, root)
      stamp()
    },
  }
}
