/**
 * The ports of a gateway for calls to actors and views are `view`, `ask`, `command` and
 * `everywhere`. They derive the type of an answer from the name of the query or command, so no
 * caller casts an answer.
 */
import t from 'tap'
import ts from 'typescript'
import type { World } from '../gateway/ports.ts'
import { readSources } from './support/structure/sources.ts'

const doors: ReadonlySet<string> = new Set(['view', 'ask', 'command', 'everywhere'])
/** Methods of a promise that return a promise with the same result. */
const passing: ReadonlySet<string> = new Set(['catch', 'finally'])

/** Returns the lines of a file that cast the answer to a call to one of `doors`. */
function castsIn(path: string, text: string): string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    const cast = ts.isAsExpression(node) || ts.isTypeAssertionExpression(node)
    if (cast && !ts.isConstTypeReference(node.type) && isAnswer(node.expression)) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart())
      found.push(`${path}:${line + 1}: ${node.getText().replace(/\s+/g, ' ')}`)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}
/**
 * Whether an expression is the answer to a call to one of `doors`, the promise of that answer, or
 * its member `reply`.
 */
function isAnswer(node: ts.Expression): boolean {
  if (ts.isCallExpression(node)) {
    const called = node.expression
    if (!ts.isPropertyAccessExpression(called)) return false
    return doors.has(called.name.text)
      ? true
      : passing.has(called.name.text) && isAnswer(called.expression)
  }
  if (ts.isIdentifier(node)) {
    const value = initializerOf(node)
    return value !== undefined && isAnswer(value)
  }
  if (ts.isPropertyAccessExpression(node))
    return node.name.text === 'reply' && isAnswer(node.expression)
  return (
    (ts.isParenthesizedExpression(node) ||
      ts.isAwaitExpression(node) ||
      ts.isAsExpression(node) ||
      ts.isTypeAssertionExpression(node) ||
      ts.isSatisfiesExpression(node) ||
      ts.isNonNullExpression(node)) &&
    isAnswer(node.expression)
  )
}
/**
 * Returns the initial value of the constant with this name in the nearest scope that declares it.
 * Returns undefined if it is not declared or has no initial value.
 */
function initializerOf(name: ts.Identifier): ts.Expression | undefined {
  for (let scope: ts.Node = name; !ts.isSourceFile(scope); scope = scope.parent) {
    // A parameter has no initial value, and shadows constants of outer functions.
    if (ts.isFunctionLike(scope) && scope.parameters.some((one) => binds(one.name, name.text)))
      return undefined
    if (!ts.isBlock(scope) && !ts.isCaseOrDefaultClause(scope)) continue
    for (const statement of scope.statements)
      if (ts.isVariableStatement(statement))
        for (const declared of statement.declarationList.declarations)
          if (binds(declared.name, name.text)) return declared.initializer
  }
  return undefined
}
const binds = (bound: ts.BindingName, name: string): boolean =>
  ts.isIdentifier(bound)
    ? bound.text === name
    : bound.elements.some((one) => ts.isBindingElement(one) && binds(one.name, name))

t.test('no cast at view, ask or command', async (t) => {
  const sources = [...readSources(['gateway', 'views', 'nodes'])]
    // The shard host is not checked, because it only answers these calls.
    .filter(([path]) => !path.startsWith('nodes/host/'))
  t.ok(sources.length > 100)
  const casts = sources.flatMap(([path, text]) => castsIn(path, text))
  t.strictSame(casts, [])
})

t.test('a cast of an answer is found', async (t) => {
  const planted = [
    'const direct = world.view(project, name, {}) as Promise<Page>',
    'const awaited = (await world.ask(to, name, {})) as Run',
    'const angled = <Page>await world.view(project, name, {})',
    'const read = (await world.command(command)).reply as Run',
    'const all = (await world.everywhere(name, {})) as Run[]',
    'const caught = (await world.view(project, name, {}).catch(() => undefined)) as Page',
    'const outcome = await world.command(command)\nreturn outcome.reply as Run',
    'const outcome = await world.command(command)\nreturn () => outcome.reply as Run',
    'const { reply } = await world.command(command)\nreturn reply as Run',
  ]
  for (const body of planted)
    t.equal(castsIn('planted.ts', `async function f() {\n${body}\n}`).length, 1, body)
  const allowed = [
    "const literal = { kind: 'run' } as const",
    'const found = await world.view(project, name, {})\nreturn found.items',
    'const found = await world.viewRow(project, name, {})\nreturn found as Page',
    'const found = await world.view(project, name, {})\nreturn f((found) => found as Page)',
    'const outcome = await world.command(command)\nreturn outcome.reply.status',
  ]
  for (const body of allowed)
    t.strictSame(castsIn('planted.ts', `async function f() {\n${body}\n}`), [], body)
})

/**
 * This function is only compiled. The type checker must accept the correct command and reject the
 * others. It also reports a `@ts-expect-error` without an error.
 */
export const commandsByName = (world: World) => {
  const to = {
    project: 'prj_1',
    id: 'run_1',
    command_id: 'c1',
    origin: { at: 0, principal: { type: 'system', id: 'system' } },
  } as const
  return [
    world.command({ ...to, kind: 'run', name: 'run.cancel', input: {} }),
    // @ts-expect-error A misspelled name.
    world.command({ ...to, kind: 'run', name: 'run.cancle', input: {} }),
    // @ts-expect-error A command of another kind of actor.
    world.command({ ...to, kind: 'queue', name: 'run.cancel', input: {} }),
    // @ts-expect-error A command that no client sends, without its input.
    world.command({ ...to, kind: 'delivery', name: 'delivery.begin', input: {} }),
  ]
}
