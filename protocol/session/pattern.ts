/** Patterns of schemas: compiled and run by the language's own automaton, in linear time, or not at all. */
import { test } from '../language/automaton.ts'
import { compilePattern as compile, type Pattern } from '../language/pattern.ts'
import { ExpressionError, WORK } from '../language/values.ts'

/** The program of a pattern, or undefined when it is none that is supported. */
export function compilePattern(source: string): Pattern | undefined {
  try {
    return compile(source)
  } catch (error) {
    if (error instanceof ExpressionError) return undefined
    throw error
  }
}
/** Whether a pattern matches somewhere in a text; not when it is none, or needs too much work. */
export function matchesPattern(source: string, text: string): boolean {
  const pattern = compilePattern(source)
  try {
    return pattern !== undefined && test(pattern, text, { left: WORK })
  } catch (error) {
    if (error instanceof ExpressionError) return false
    throw error
  }
}
