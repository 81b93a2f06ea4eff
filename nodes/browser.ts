/**
 * The program of the pages, as browsers take it: every module that an entry reaches, without types, under the address by which
 * the others import it. Nothing is bundled and nothing is built ahead; what no entry reaches is not served.
 *
 * Invariant: each import of a module given here is the address of another one given here.
 */
import { readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transform } from '@oxc-node/core'

const root = dirname(import.meta.dirname)
const PREFIX = '/modules/'
const PACKAGES = `${sep}node_modules${sep}`
/** The source of an import or export at the beginning of a line: names, braces and commas, then the text. */
const source = /^((?:import|export)\b[\w$\s{},*]*?)(["'])([^"'\n]+)\2/gm

/** The file that a module means by a name. */
const fileOf = (name: string, from: string): string =>
  name.startsWith('.') ? join(dirname(from), name) : fileURLToPath(import.meta.resolve(name))
/** The address of a file: packages apart, because they may lie anywhere. */
function addressOf(file: string): string {
  const at = file.lastIndexOf(PACKAGES)
  return (
    PREFIX +
    (at < 0 ? relative(root, file) : join('packages', file.slice(at + PACKAGES.length)))
      .split(sep)
      .join('/')
  )
}

/** Modules by address, in the order in which they are reached. @param entries files of this project, such as `client/chat/main.ts`. @throws Error when one is not there or cannot be read. */
export function browserModules(...entries: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  const visit = (file: string): string => {
    const address = addressOf(file)
    if (found.has(address)) return address
    // Known before it is read: modules may import each other in a circle.
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
