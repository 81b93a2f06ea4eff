/**
 * Finds cycles of value imports. Modules in a cycle are initialized in an order that depends on
 * which of them is loaded first. None of them can be understood or tested without the others.
 *
 * A type import is erased, so it is not an edge. A dynamic import is evaluated after the importing
 * module was initialized, so it is not an edge either.
 */
import { posix } from 'node:path'
import ts from 'typescript'
import type { Sources } from './sources.ts'

/**
 * Returns the text up to the last import or re-export. Parsing the rest would take most of the
 * time.
 */
const uptoLastImport = (text: string): string =>
  /^[\s\S]*^(?:import\b.*|.*\bfrom *['"].*)$/m.exec(text)?.[0] ?? ''

/** Returns the modules from which a file imports or re-exports values, relative to the root. */
function valueImports(path: string, text: string): string[] {
  const file = ts.createSourceFile(path, uptoLastImport(text), ts.ScriptTarget.Latest)
  return file.statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return []
    const { moduleSpecifier } = statement
    if (!moduleSpecifier || !ts.isStringLiteral(moduleSpecifier)) return []
    if (!moduleSpecifier.text.startsWith('.') || !importsValue(statement)) return []
    return [posix.join(posix.dirname(path), moduleSpecifier.text)]
  })
}

function importsValue(statement: ts.ImportDeclaration | ts.ExportDeclaration): boolean {
  if (ts.isExportDeclaration(statement)) {
    const { isTypeOnly, exportClause } = statement
    return (
      !isTypeOnly && !(exportClause && ts.isNamedExports(exportClause) && onlyTypes(exportClause))
    )
  }
  const clause = statement.importClause
  if (!clause) return true
  if (clause.isTypeOnly) return false
  const { name, namedBindings } = clause
  return (
    name !== undefined ||
    !namedBindings ||
    !ts.isNamedImports(namedBindings) ||
    !onlyTypes(namedBindings)
  )
}

const onlyTypes = ({ elements }: ts.NamedImports | ts.NamedExports): boolean =>
  elements.length > 0 && elements.every((element) => element.isTypeOnly)

/** An import cycle: its files, and each import between two of them as `importer -> imported`. */
export interface ImportCycle {
  readonly files: readonly string[]
  readonly edges: readonly string[]
}

/**
 * Finds the strongly connected components with more than one file, and files that import
 * themselves. Imports of files outside of `sources` are ignored.
 */
export function importCyclesOf(sources: Sources): ImportCycle[] {
  const graph = new Map(
    [...sources].map(([path, text]) => [
      path,
      [...new Set(valueImports(path, text))].filter((target) => sources.has(target)),
    ]),
  )
  const targetsOf = (path: string): readonly string[] => graph.get(path) ?? []
  return componentsOf(graph)
    .map((files) => ({
      files: files.toSorted(),
      edges: files
        .flatMap((from) =>
          targetsOf(from)
            .filter((to) => files.includes(to))
            .map((to) => `${from} -> ${to}`),
        )
        .toSorted(),
    }))
    .filter(({ edges }) => edges.length > 0)
}

/** Returns the strongly connected components, by Tarjan's algorithm. */
function componentsOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const components: string[][] = []
  const index = new Map<string, number>()
  const stack: string[] = []
  const onStack = new Set<string>()
  /**
   * Visits a vertex. Returns the smallest index of a vertex on the stack that is reachable from it.
   */
  const visit = (vertex: string): number => {
    const own = index.size
    let low = own
    index.set(vertex, own)
    stack.push(vertex)
    onStack.add(vertex)
    for (const next of graph.get(vertex) ?? []) {
      const known = index.get(next)
      if (known === undefined) low = Math.min(low, visit(next))
      else if (onStack.has(next)) low = Math.min(low, known)
    }
    if (low === own) {
      const component = stack.splice(stack.indexOf(vertex))
      for (const member of component) onStack.delete(member)
      components.push(component)
    }
    return low
  }
  for (const vertex of graph.keys()) if (!index.has(vertex)) visit(vertex)
  return components
}
