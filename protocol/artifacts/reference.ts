/**
 * References to artifacts in the results of jobs. A result is stored as it was reported. A
 * reference grants no access: the artifact is looked up in the project of the result, with the
 * rights of the reader.
 */

/** A reference to an artifact in the result of a job. `size` is in bytes. */
export interface ArtifactReference {
  readonly type: 'artifact'
  readonly id: string
  readonly name?: string
  readonly mime: string
  readonly size: number
  /** Lower-case hex. */
  readonly sha256: string
}

/**
 * Limits of a search in one value: the number of references returned, and the number of levels
 * searched.
 */
const MAX = { references: 50, depth: 64 } as const
const ID = /^art_[A-Za-z0-9]{1,64}$/
const SHA256 = /^[0-9a-f]{64}$/

/**
 * Returns the references in a JSON value, in the order in which they occur: at most one per
 * artifact, and 50 in total. Objects that are not valid references are searched like other values.
 */
export function artifactReferences(value: unknown): readonly ArtifactReference[] {
  const found = new Map<string, ArtifactReference>()
  collect(value, 1, found)
  return [...found.values()]
}
function collect(value: unknown, depth: number, found: Map<string, ArtifactReference>): void {
  if (typeof value !== 'object' || value === null || depth > MAX.depth) return
  if (found.size >= MAX.references) return
  if (isReference(value)) {
    if (!found.has(value.id)) found.set(value.id, value)
    return
  }
  for (const member of Object.values(value)) collect(member, depth + 1, found)
}

function isReference(value: object): value is ArtifactReference {
  const { type, id, name, mime, size, sha256 } = value as Readonly<Record<string, unknown>>
  return (
    type === 'artifact' &&
    typeof id === 'string' &&
    ID.test(id) &&
    (name === undefined || typeof name === 'string') &&
    typeof mime === 'string' &&
    Number.isSafeInteger(size) &&
    Number(size) >= 0 &&
    typeof sha256 === 'string' &&
    SHA256.test(sha256)
  )
}
