/**
 * The SQL function `vec_distance_cosine(a, b)` of a view's database: the cosine distance (0 to 2)
 * of two vectors of 32-bit floating-point numbers. The extension `sqlite-vec` provides the
 * function. If the extension cannot be loaded, a JavaScript implementation is used, which takes
 * about three times as long.
 */
import type { Database } from 'better-sqlite3'
import { load } from 'sqlite-vec'

/**
 * The implementation that computes distances. `fault`: the reason why the extension could not be
 * loaded.
 */
export interface DistanceEngine {
  readonly name: 'sqlite-vec' | 'javascript'
  readonly fault?: string
}

/** Adds the function to a database that was just opened. */
export function addDistance(db: Database, loadExtension = load): DistanceEngine {
  try {
    loadExtension(db)
    return { name: 'sqlite-vec' }
  } catch (error) {
    addInJavaScript(db)
    return { name: 'javascript', fault: (error as Error).message }
  }
}
function addInJavaScript(db: Database): void {
  // The second vector is the same for all rows of a search, so it is decoded only once.
  let last: { readonly bytes: Uint8Array; readonly vector: Float32Array } | undefined
  db.function('vec_distance_cosine', { deterministic: true }, (a: unknown, b: unknown) => {
    const [row, other] = [a, b] as [Buffer, Buffer]
    if (!last || !other.equals(last.bytes)) last = { bytes: other, vector: vectorOf(other) }
    return cosineDistance(vectorOf(row), last.vector)
  })
}

/** Returns the components of a stored vector. */
function vectorOf(bytes: Uint8Array): Float32Array {
  const { buffer, byteOffset, byteLength } = bytes
  return byteOffset % 4 === 0
    ? new Float32Array(buffer, byteOffset, byteLength / 4)
    : new Float32Array(bytes.slice().buffer)
}
/** Returns the cosine distance of two vectors; null if one of them is zero. */
function cosineDistance(a: Float32Array, b: Float32Array): number | null {
  if (a.length !== b.length) throw new Error('vectors have different numbers of dimensions')
  let [dot, x, y] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    const [p, q] = [a[i] as number, b[i] as number]
    dot += p * q
    x += p * p
    y += q * q
  }
  return x === 0 || y === 0 ? null : 1 - dot / Math.sqrt(x * y)
}
