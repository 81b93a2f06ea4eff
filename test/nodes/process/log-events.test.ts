/** Event names of log lines: every log call has one, and each name is used for only one message. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'

const root = join(import.meta.dirname, '..', '..', '..')
const files = ['actors', 'gateway', 'nodes', 'views'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name)),
)
/**
 * The files that log the warnings of actors and the entries of threads. They are not checked,
 * because their event names and messages are variables.
 */
const forwards: ReadonlySet<string> = new Set([
  'nodes/host/warnings.ts',
  'nodes/roles/thread-log.ts',
])

interface Logged {
  readonly where: string
  readonly events: readonly string[]
  readonly messages: readonly string[]
}

/**
 * Returns the string literals to which an expression can evaluate. For a conditional expression,
 * these are the literals of both branches.
 */
function literals(node: ts.Expression | undefined): readonly string[] {
  if (node === undefined) return []
  if (ts.isConditionalExpression(node))
    return [...literals(node.whenTrue), ...literals(node.whenFalse)]
  return ts.isStringLiteral(node) ? [node.text] : []
}

function initializerOf(
  object: ts.ObjectLiteralExpression,
  name: string,
): ts.Expression | undefined {
  for (const property of object.properties)
    if (ts.isPropertyAssignment(property) && property.name.getText() === name)
      return property.initializer
  return undefined
}

/** Whether a node is a call such as `log.warn(…)`, `world.log.warn(…)` or `log[level](…)`. */
function isLogCall(node: ts.Node): node is ts.CallExpression {
  if (!ts.isCallExpression(node)) return false
  const { expression } = node
  if (ts.isElementAccessExpression(expression))
    return /\blog$/.test(expression.expression.getText())
  return (
    ts.isPropertyAccessExpression(expression) &&
    /^(debug|info|warn|error)$/.test(expression.name.text) &&
    /\blog$/.test(expression.expression.getText())
  )
}

function loggedIn(file: string): readonly Logged[] {
  const text = readFileSync(join(root, file), 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found: Logged[] = []
  const visit = (node: ts.Node): void => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart())
    const where = `${file}:${line + 1}`
    if (isLogCall(node)) {
      const [fields, message] = node.arguments
      const events =
        fields && ts.isObjectLiteralExpression(fields)
          ? literals(initializerOf(fields, 'event'))
          : []
      found.push({ where, events, messages: literals(message) })
    } else if (ts.isPropertyAssignment(node) && node.name.getText() === 'warn') {
      const { initializer } = node
      // A warning of an actor (`actors/actor.ts`).
      if (ts.isObjectLiteralExpression(initializer))
        found.push({
          where,
          events: literals(initializerOf(initializer, 'event')),
          messages: literals(initializerOf(initializer, 'message')),
        })
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

const logged = files.filter((file) => !forwards.has(file)).flatMap(loggedIn)

t.test('every log call has an event and a message that are literals', async (t) => {
  t.ok(logged.length > 80, `${logged.length} log calls were found`)
  for (const { where, events, messages } of logged) {
    t.ok(events.length > 0, `${where} has an event`)
    t.equal(messages.length, events.length, `${where} has a message for each event`)
  }
})

t.test('an event is in snake_case and stands for one message', async (t) => {
  const [messageOf, eventOf] = [new Map<string, string>(), new Map<string, string>()]
  for (const { where, events, messages } of logged)
    for (const [i, event] of events.entries()) {
      const message = messages[i] ?? ''
      t.match(event, /^[a-z]+(_[a-z]+)*$/, where)
      t.equal(messageOf.get(event) ?? message, message, `${where}: ${event} has one message`)
      t.equal(eventOf.get(message) ?? event, event, `${where}: "${message}" has one event`)
      messageOf.set(event, message)
      eventOf.set(message, event)
    }
})
