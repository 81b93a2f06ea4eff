/**
 * The embedding model of the built-in provider, for tests and demonstrations only. Each token of a
 * text increments one dimension, which is derived from a hash of the token. Tokens of the same
 * group of synonyms increment the same dimension.
 */
import { createHash } from 'node:crypto'
import { tokensOf } from '../../../protocol/tables/search.ts'
import type { EmbedTexts } from './serve.ts'

/** Number of dimensions of a vector. */
const DIMENSIONS = 256
const synonyms: readonly (readonly string[])[] = [
  ['car', 'cars', 'automobile', 'vehicle', 'auto'],
  ['doctor', 'physician', 'medic'],
  ['invoice', 'invoices', 'bill', 'bills', 'payment', 'payments'],
  ['late', 'overdue', 'delayed'],
  ['broken', 'defective', 'damaged', 'faulty'],
]
const groups: ReadonlyMap<string, string> = new Map(
  synonyms.flatMap((group) => group.map((word) => [word, group[0] ?? word] as const)),
)

/** Returns the vector of a text, or the zero vector for a text without tokens. */
function hashedVector(text: string): number[] {
  const vector = new Array<number>(DIMENSIONS).fill(0)
  for (const token of tokensOf(text)) {
    const hash = createHash('sha256')
      .update(groups.get(token) ?? token)
      .digest()
    const at = hash.readUInt16BE(0) % DIMENSIONS
    vector[at] = (vector[at] ?? 0) + 1
  }
  return vector
}
export const hashedEmbedding: EmbedTexts = async (texts) => texts.map(hashedVector)
