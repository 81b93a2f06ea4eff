/** Keyword search in rows: tokens of texts, and which rows a query finds. */
import type { JsonObject } from '../common.ts'

/** Returns the tokens of a text: lower-case sequences of letters and digits (Unicode L and N). */
export const tokensOf = (text: string): string[] =>
  text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/** Returns the string values of a row's data, including nested ones, in their order. */
export function textsOf(data: unknown): string[] {
  if (typeof data === 'string') return [data]
  return typeof data === 'object' && data !== null ? Object.values(data).flatMap(textsOf) : []
}
/** Returns the tokens of all string values of a row. */
export const rowTokens = (data: JsonObject): string[] => textsOf(data).flatMap(tokensOf)

/**
 * Returns how many different tokens of a query a row has exactly; undefined when the query does not
 * find the row, because one of its tokens is not the prefix of any token of the row. Rows with more
 * exact hits come first, then those updated later, then those with a smaller id.
 */
export function exactHits(query: readonly string[], row: readonly string[]): number | undefined {
  if (!query.every((token) => row.some((other) => other.startsWith(token)))) return undefined
  const words = new Set(row)
  return [...new Set(query)].filter((token) => words.has(token)).length
}
