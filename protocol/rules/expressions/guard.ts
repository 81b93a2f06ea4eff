/**
 * Guards of conditions. A condition of the form `a.b == "x" && …` is false for every document with
 * another value at `a.b`. A caller with many conditions can skip the conditions whose guards do not
 * match, without evaluating them.
 */
import type { ASTNode } from '@marcbachmann/cel-js'

/** The value that a condition requires at a path. */
export interface Guard {
  readonly path: readonly string[]
  readonly value: string | number | boolean
}

/**
 * Returns the guard of a syntax tree. Returns undefined unless the condition begins with an
 * equality test between a path and a literal string, number or boolean.
 */
export function guardOf(node: ASTNode): Guard | undefined {
  if (node.op === '&&') return guardOf(node.args[0])
  if (node.op !== '==') return undefined
  const [a, b] = node.args
  const path = pathOf(a) ?? pathOf(b)
  const value = literalOf(pathOf(a) ? b : a)
  return path && value !== undefined ? { path, value } : undefined
}

function pathOf(node: ASTNode): readonly string[] | undefined {
  if (node.op === 'id') return [node.args]
  const of = node.op === '.' ? pathOf(node.args[0]) : undefined
  return of && node.op === '.' ? [...of, node.args[1]] : undefined
}
function literalOf(node: ASTNode): Guard['value'] | undefined {
  if (node.op !== 'value') return undefined
  const value: unknown = typeof node.args === 'bigint' ? Number(node.args) : node.args
  return typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER)
    ? value
    : undefined
}
