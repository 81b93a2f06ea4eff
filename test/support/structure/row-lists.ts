/**
 * Finds literals that are outside the endpoint table and list rows of it: an array of row names
 * (also inside `new Set`), or an object whose property names are row names and whose values are
 * constant. Such a list states a fact about its rows that must be kept up to date when rows are
 * added. The fact belongs in the row, and the list can be derived from it.
 *
 * An object whose values are functions does not count as a list, because it implements its rows.
 */
import ts from 'typescript'
import type { Sources } from './sources.ts'

/** Minimum number of row names in a literal that counts as a list of rows. */
const MIN_ROWS = 3
const declaresRows = (file: string): boolean => /^protocol\/(api|(.+[/-])?rows)\.ts$/.test(file)

/** Whether a text can contain a list of rows. Other texts are not parsed, which saves time. */
const mentionsRows = (text: string, isRow: (name: string) => boolean): boolean =>
  [...text.matchAll(/['"`]([\w.]+)['"`]/g)].filter(([, name = '']) => isRow(name)).length >=
  MIN_ROWS

/** Returns the lists of rows, each as `file:line name, name, name`. */
export const rowListsIn = (sources: Sources, isRow: (name: string) => boolean): string[] =>
  [...sources]
    .filter(([file, text]) => !declaresRows(file) && mentionsRows(text, isRow))
    .flatMap(([file, text]) => {
      const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
      const lists: string[] = []
      const visit = (node: ts.Node): void => {
        const rows = namesIn(node).filter(isRow)
        const { line } = source.getLineAndCharacterOfPosition(node.getStart(source))
        if (rows.length >= MIN_ROWS) lists.push(`${file}:${line + 1} ${rows.join(', ')}`)
        ts.forEachChild(node, visit)
      }
      visit(source)
      return lists
    })

/** Returns the texts of an array, or the names of an object's properties with constant values. */
function namesIn(node: ts.Node): string[] {
  if (ts.isArrayLiteralExpression(node))
    return node.elements.filter(ts.isStringLiteralLike).map(({ text }) => text)
  if (!ts.isObjectLiteralExpression(node)) return []
  return node.properties.flatMap((member) =>
    ts.isPropertyAssignment(member) &&
    ts.isStringLiteral(member.name) &&
    isConstant(member.initializer)
      ? [member.name.text]
      : [],
  )
}

/** Whether an expression consists of literals only. */
function isConstant(node: ts.Expression): boolean {
  if (
    ts.isAsExpression(node) ||
    ts.isSatisfiesExpression(node) ||
    ts.isParenthesizedExpression(node)
  )
    return isConstant(node.expression)
  if (ts.isPrefixUnaryExpression(node)) return isConstant(node.operand)
  if (ts.isArrayLiteralExpression(node)) return node.elements.every(isConstant)
  if (ts.isObjectLiteralExpression(node))
    return node.properties.every(
      (member) => ts.isPropertyAssignment(member) && isConstant(member.initializer),
    )
  return (
    ts.isLiteralExpression(node) ||
    node.kind === ts.SyntaxKind.TrueKeyword ||
    node.kind === ts.SyntaxKind.FalseKeyword ||
    node.kind === ts.SyntaxKind.NullKeyword
  )
}
