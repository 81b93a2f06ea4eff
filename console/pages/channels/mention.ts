/** Completes mentions while a message is being written. The functions are pure. */
import type { ArtifactReference } from '../../../protocol/artifacts/reference.ts'

/** A principal that can be mentioned. */
export interface Mentionable {
  readonly id: string
  readonly name: string
  readonly kind: 'user' | 'service' | 'agent' | 'system'
}
/** A mention that is being typed, from the `@` at index `start` to the caret. */
export interface Mention {
  readonly start: number
  readonly typed: string
}

const BEGUN = /(?:^|[^\p{L}\p{N}_])@([\p{L}\p{N}_.-]*)$/u
/** Returns the mention before the caret; undefined if none is being typed. */
export function mentionAt(text: string, caret: number): Mention | undefined {
  const found = BEGUN.exec(text.slice(0, caret))
  const typed = found?.[1]
  return typed === undefined ? undefined : { start: caret - typed.length - 1, typed }
}

/** Maximum number of suggested names. */
const MAX_OFFERED = 8
/**
 * Returns at most `MAX_OFFERED` principals whose name, or a word in it, begins with the typed text.
 * Agents come first.
 */
export function matching(people: readonly Mentionable[], typed: string): readonly Mentionable[] {
  const wanted = typed.toLowerCase()
  return people
    .filter(({ name }) => {
      const low = name.toLowerCase()
      return low.startsWith(wanted) || low.split(/[\s._-]+/).some((word) => word.startsWith(wanted))
    })
    .sort(
      (a, b) =>
        Number(b.kind === 'agent') - Number(a.kind === 'agent') || a.name.localeCompare(b.name),
    )
    .slice(0, MAX_OFFERED)
}

/** Returns the text with the mention completed, and the new position of the caret. */
export function complete(
  text: string,
  { start, typed }: Mention,
  name: string,
): { readonly text: string; readonly caret: number } {
  const before = `${text.slice(0, start)}@${name} `
  const rest = text.slice(start + 1 + typed.length).replace(/^ /, '')
  return { text: before + rest, caret: before.length }
}

/** The members of the reply to an upload from which the reference to the file is made. */
interface Uploaded {
  readonly id: string
  readonly name: string
  readonly mime_type: string
  readonly size_bytes: number
  readonly sha256?: string
}
/** Returns the reference to an uploaded file, for the metadata of a message. */
export const referenceOf = (file: Uploaded): ArtifactReference => ({
  type: 'artifact',
  id: file.id,
  name: file.name,
  mime: file.mime_type,
  size: file.size_bytes,
  sha256: file.sha256 ?? '',
})
