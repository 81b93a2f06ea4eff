/**
 * Installs the npm packages when they are missing or differ from package-lock.json. A stamp in
 * node_modules records the installed lock file. If the stamp is missing or does not match, npm's
 * own record of node_modules is compared with the lock file, so that packages that were installed
 * by hand are not installed again.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

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
 * Ensures that the packages are installed.
 * @param {string} root folder of the project
 * @param {boolean} development whether development packages, such as those of tests, are needed
 * @param {(line: string) => void} progress
 * @throws {Error} when node_modules is a link to a folder with other packages, or npm fails
 */
export function ensureDependencies(root, development, progress) {
  const modules = join(root, 'node_modules')
  const stampFile = join(modules, '.baton-stamp')
  const lockFile = join(root, 'package-lock.json')
  const hash = createHash('sha256').update(readFileSync(lockFile)).digest('hex')
  const stamp = (/** @type {boolean} */ withDevelopment) =>
    writeFileSync(stampFile, JSON.stringify({ hash, development: withDevelopment }))

  const present = read(stampFile)
  if (present?.hash === hash && (present.development || !development)) return
  const record = read(join(modules, '.package-lock.json'))?.packages
  const state = record ? compareLocks(read(lockFile)?.packages ?? {}, record) : 'stale'
  if (state === 'all' || (state === 'production' && !development)) return stamp(state === 'all')

  // npm would delete the packages in the folder to which the link points, which other projects
  // share.
  if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new Error(
      `${modules} is a link to a folder whose packages do not match package-lock.json. ` +
        'Remove the link and run this again, ' +
        'or run `npm ci` in the project that owns that folder.',
    )
  const everything = development || existsSync(modules)
  progress(
    `Installing packages (${existsSync(modules) ? 'package-lock.json changed' : 'first run'}; ` +
      'this takes a minute or two) …',
  )
  const args = [
    'ci',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    ...(everything ? [] : ['--omit=dev']),
  ]
  const npm = process.env['npm_execpath']
  const options = {
    cwd: root,
    encoding: /** @type {const} */ ('utf8'),
    env: { ...process.env, NODE_ENV: '' },
  }
  const { status, error, stdout, stderr } = npm?.endsWith('.js')
    ? spawnSync(process.execPath, [npm, ...args], options)
    : spawnSync('npm', args, options)
  if (status === 0) return stamp(everything)
  const output = `${stdout ?? ''}${stderr ?? ''}${error ? `${error.message}\n` : ''}`
  throw new Error(
    `${output}The packages could not be installed. ` +
      `Check the connection to the npm registry and run \`npm ci\` in ${root}.`,
  )
}
