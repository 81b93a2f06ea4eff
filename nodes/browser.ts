/**
 * Prepares the JavaScript modules of the browser pages: the entries, and every module that they
 * import directly or indirectly. Types are stripped. Each module is served under the address by
 * which other modules import it. The name of a package in an import refers to the file to which
 * Node.js resolves the name. There is no bundling and no build step. Modules that are neither an
 * entry nor imported are not served.
 *
 * Invariant: every static import in a module returned here is the address of another module
 * returned here.
 */
import { readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transform } from '@oxc-node/core'

const root = dirname(import.meta.dirname)
const PREFIX = '/modules/'
const PACKAGES = `${sep}node_modules${sep}`
/**
 * Matches an import or export from another module at the beginning of a line, up to and including
 * the name of that module.
 */
const source = /^((?:import|export)\b[\w$\s{},*]*?)(["'])([^"'\n]+)\2/gm

/** Returns the file to which the module name in an import resolves. */
const fileOf = (name: string, from: string): string =>
  name.startsWith('.') ? join(dirname(from), name) : fileURLToPath(import.meta.resolve(name))
/**
 * Returns the address of a file. Packages have a separate folder, because they may be installed
 * anywhere.
 */
function addressOf(file: string): string {
  const at = file.lastIndexOf(PACKAGES)
  return (
    PREFIX +
    (at < 0 ? relative(root, file) : join('packages', file.slice(at + PACKAGES.length)))
      .split(sep)
      .join('/')
  )
}

/**
 * Returns modules by address, in the order of their imports.
 * @param entries files of this project, such as `client/chat/main.ts`.
 * @throws Error when a module cannot be resolved or read.
 */
export function browserModules(...entries: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const visit = (file: string): string => {
    const address = addressOf(file)
    if (found.has(address)) return address
    // The module is registered before it is read, because imports may be circular.
    found.set(address, '')
    const text = readFileSync(file, 'utf8')
    const plain = file.endsWith('.ts') ? transform(file, text).source() : text
    found.set(
      address,
      plain.replace(
        source,
        (_, before: string, quote: string, name: string) =>
          `${before}${quote}${visit(fileOf(name, file))}${quote}`,
      ),
    )
    return address
  }
  for (const entry of entries) visit(join(root, entry))
  return found
}
