/**
 * Adding the actor and the view of a resource takes at most five lines outside the folders of the
 * resource. The test counts these lines for loops.
 *
 * A line of code outside comments and tests is counted if one of these conditions holds:
 * - It imports the actor or the view, or uses a name that such a line imports.
 * - It contains the kind `loop` as a name or a string, and its file lists kinds, actors, prefixes
 *   or views, or is the view of another resource.
 *
 * The following lines are not counted:
 * - the two lines of `protocol/api.ts` that every resource with endpoints has, with or without an
 *   actor.
 * - the types of the resource's queries in `protocol/queries/`.
 * - other actors in the same folder (`plan`, `trigger_handle`), each of which needs three more
 *   lines.
 * - code of other resources that works with loops.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..')
const own = /^(protocol|actors|gateway|views\/tables)\/loops\//
const files = ['protocol', 'actors', 'gateway', 'views', 'nodes', 'client']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|mjs)$/.test(name) && !name.includes('node_modules'))
      .map((name) => join(folder, name)),
  )
  .filter((file) => !own.test(file))
/** Files with tables that list kinds, actors, prefixes or views. */
const tables =
  /^protocol\/(entry|ids)\.ts$|^actors\/[^/]+$|^views\/([^/]+|files\/[^/]+|tables\/\w+\/view\.ts)$/
const kind = /^\s*loop\??:|['"]loop['"]/
const imported =
  /import (?:type )?\{([^}]*)\} from '[^']*(?:\/loops\/loop\.ts|tables\/loops\/[^']+)'/g

/** Returns the lines of a file that register loops, each with the name of the file before it. */
function registrations(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*/g, '')
  const names = [...text.matchAll(imported)].flatMap(([, list = '']) => list.match(/\w+/g) ?? [])
  const used = names.map((name) => new RegExp(`\\b${name}\\b`))
  return text
    .split('\n')
    .filter(
      (line) => used.some((name) => name.test(line)) || (tables.test(file) && kind.test(line)),
    )
    .map((line) => `${file}: ${line.trim()}`)
}

t.test('an actor and a view need at most five lines outside of their folders', async (t) => {
  const lines = files.flatMap(registrations)
  t.strictSame(
    [...new Set(lines.map((line) => line.slice(0, line.indexOf(':'))))].toSorted(),
    ['actors/kinds.ts', 'protocol/entry.ts', 'views/views.ts'],
    lines.join('\n'),
  )
  t.ok(lines.length <= 5, lines.join('\n'))
})
