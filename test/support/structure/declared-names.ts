/**
 * Collects the names and texts that readers and operators of the program see: declared names, the
 * texts and `event` fields of log lines, and the names of files and metrics.
 *
 * Local variables are not included, because their scope explains them. Properties of object
 * literals are not included either, because their types declare them.
 */
import { posix } from 'node:path'
import ts from 'typescript'
import type { Sources } from './sources.ts'

export interface Name {
  readonly kind: 'declaration' | 'file' | 'log' | 'metric'
  readonly text: string
  readonly file: string
  /** The line number, starting at 1. */
  readonly line: number
}

export const namesIn = (sources: Sources): Name[] =>
  [...sources].flatMap(([file, text]) => [
    { kind: 'file', text: posix.basename(file).replace(/\..*/, ''), file, line: 1 },
    ...namesInFile(file, text),
  ])

function namesInFile(file: string, text: string): Name[] {
  const source = ts.createSourceFile(
    file,
    text,
    { languageVersion: ts.ScriptTarget.Latest, jsDocParsingMode: ts.JSDocParsingMode.ParseNone },
    true,
  )
  const names: Name[] = []
  const add = (kind: Name['kind'], node: ts.Node, text: string): void => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart(source))
    names.push({ kind, text, file, line: line + 1 })
  }
  const visit = (node: ts.Node): void => {
    for (const name of declaredBy(node)) add('declaration', name, name.text)
    if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name) && node.name.text === 'event')
      for (const text of textsOf(node.initializer)) add('log', node, text)
    if (ts.isCallExpression(node)) {
      const kind = kindOf(node.expression)
      if (kind)
        for (const argument of node.arguments)
          for (const text of textsOf(argument)) add(kind, argument, text)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return names
}

/**
 * Returns the kind of the names that the called function receives as texts. Returns undefined if
 * its texts are not names.
 */
function kindOf(callee: ts.Expression): 'log' | 'metric' | undefined {
  if (ts.isIdentifier(callee)) return METRIC.test(callee.text) ? 'metric' : undefined
  if (!ts.isPropertyAccessExpression(callee) || !LEVEL.test(callee.name.text)) return undefined
  const { expression: log } = callee
  const name = ts.isPropertyAccessExpression(log) ? log.name : log
  return ts.isIdentifier(name) && name.text === 'log' ? 'log' : undefined
}
const LEVEL = /^(trace|debug|info|warn|error|fatal)$/
const METRIC = /^(counter|gauge|histogram)$/

type NameNode = ts.Identifier | ts.PrivateIdentifier | ts.StringLiteral

/** Returns the names that a node itself declares, without those that its children declare. */
function declaredBy(node: ts.Node): NameNode[] {
  if (ts.isVariableDeclaration(node)) {
    const statement = node.parent.parent
    return ts.isVariableStatement(statement) && ts.isSourceFile(statement.parent)
      ? namesOf(node.name)
      : []
  }
  if (ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node))
    return ts.isSourceFile(node.parent) && node.name ? [node.name] : []
  if (
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isTypeParameterDeclaration(node) ||
    ts.isTypeElement(node) ||
    ts.isClassElement(node)
  )
    return node.name ? namesOf(node.name) : []
  // A destructured parameter names properties that its type declares.
  return ts.isParameter(node) && ts.isIdentifier(node.name) ? [node.name] : []
}

function namesOf(name: ts.BindingName | ts.PropertyName): NameNode[] {
  if (ts.isObjectBindingPattern(name) || ts.isArrayBindingPattern(name))
    return name.elements.flatMap((element) =>
      ts.isBindingElement(element) ? namesOf(element.name) : [],
    )
  return ts.isIdentifier(name) || ts.isPrivateIdentifier(name) || ts.isStringLiteral(name)
    ? [name]
    : []
}

/**
 * Returns the literal texts of an expression: a string, the parts of a template, or the texts of
 * both branches of a conditional expression.
 */
function textsOf(node: ts.Expression): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (ts.isTemplateExpression(node))
    return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)]
  return ts.isConditionalExpression(node)
    ? [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)]
    : []
}
