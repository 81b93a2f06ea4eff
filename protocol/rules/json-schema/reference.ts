/**
 * References inside a schema: `#`, `#/a/b` (RFC 6901) and `#name` of an `$anchor` or
 * `$dynamicAnchor`. A schema cannot refer to other documents.
 */
import { type Budget, spend } from '../expressions/values.ts'
import { isJsonObject } from '../json-object.ts'

/**
 * Returns the schema that a reference identifies; undefined if the reference identifies no schema
 * in the document.
 * @throws ExpressionError when the budget is exhausted.
 */
export function resolveReference(document: unknown, reference: string, budget: Budget): unknown {
  if (reference === '#') return document
  if (!reference.startsWith('#')) return undefined
  if (!reference.startsWith('#/')) return anchored(document, reference.slice(1), budget)
  let found: unknown = document
  for (const part of reference.slice(2).split('/')) {
    const key = unescaped(part)
    if (key === undefined || typeof found !== 'object' || found === null) return undefined
    if (!Object.hasOwn(found, key)) return undefined
    found = (found as Record<string, unknown>)[key]
  }
  return isJsonObject(found) || typeof found === 'boolean' ? found : undefined
}

function unescaped(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return undefined
  }
}

/**
 * Returns the schema with an anchor, or undefined. Avoids recursion, because deep documents would
 * overflow the stack.
 */
function anchored(document: unknown, name: string, budget: Budget): unknown {
  const todo: unknown[] = [document]
  for (let value = todo.pop(); value !== undefined; value = todo.pop()) {
    spend(budget, 1)
    if (isJsonObject(value) && (value['$anchor'] === name || value['$dynamicAnchor'] === name))
      return value
    if (typeof value === 'object' && value !== null) todo.push(...Object.values(value))
  }
  return undefined
}
