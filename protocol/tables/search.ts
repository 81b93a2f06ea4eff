/** Keyword search in rows: the tokens of texts, and the rule for matching rows. */
import type { JsonObject } from '../common.ts'
import { foldText } from '../rules/fold-text.ts'

/**
 * Returns the tokens of a text: lower-case sequences of letters and digits (Unicode L and N) with
 * their combining marks (M). Texts that Unicode defines as equivalent have the same tokens; see
 * `foldText`.
 */
export const tokensOf = (text: string): string[] =>
  foldText(text).match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? []

/** Returns the string values of a row's data in order, including nested values. */
export function textsOf(data: unknown): string[] {
  if (typeof data === 'string') return [data]
  return typeof data === 'object' && data !== null ? Object.values(data).flatMap(textsOf) : []
}
/** Returns the tokens of all string values of a row. */
export const rowTokens = (data: JsonObject): string[] => textsOf(data).flatMap(tokensOf)

/**
 * Returns the number of distinct query tokens that equal a token of the row. A row matches if every
 * query token is a prefix of some token of the row. Returns undefined if the row does not match.
 * Matching rows are sorted by this number (descending), then by time of update (descending), then
 * by id.
 */
export function exactHits(query: readonly string[], row: readonly string[]): number | undefined {
  if (!query.every((token) => row.some((other) => other.startsWith(token)))) return undefined
  const words = new Set(row)
  return [...new Set(query)].filter((token) => words.has(token)).length
}
