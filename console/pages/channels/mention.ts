/** Completion of mentions while a message is written. Pure. */
import type { ArtifactReference } from '../../../protocol/artifacts/reference.ts'

/** Somebody who can be mentioned. */
export interface Mentionable {
  readonly id: string
  readonly name: string
  readonly kind: 'user' | 'service' | 'agent' | 'system'
}
/** A mention that is being written: from `start`, the place of `@`, to the caret. */
export interface Mention {
  readonly start: number
  readonly typed: string
}

const BEGUN = /(?:^|[^\p{L}\p{N}_])@([\p{L}\p{N}_.-]*)$/u
/** Returns the mention before the caret, or undefined when none is being written. */
export function mentionAt(text: string, caret: number): Mention | undefined {
  const found = BEGUN.exec(text.slice(0, caret))
  const typed = found?.[1]
  return typed === undefined ? undefined : { start: caret - typed.length - 1, typed }
}

const MAX_OFFERED = 8
/** Returns those whose name, or a word of it, begins with the text; agents are first. */
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

/** Returns the text with the mention completed, and the new place of the caret. */
export function complete(
  text: string,
  { start, typed }: Mention,
  name: string,
): { readonly text: string; readonly caret: number } {
  const before = `${text.slice(0, start)}@${name} `
  const rest = text.slice(start + 1 + typed.length).replace(/^ /, '')
  return { text: before + rest, caret: before.length }
}

/** The answer to an upload, as far as a reference needs it. */
interface Uploaded {
  readonly id: string
  readonly name: string
  readonly mime_type: string
  readonly size_bytes: number
  readonly sha256?: string
}
/** Returns the reference with which the metadata of a message names an uploaded file. */
export const referenceOf = (file: Uploaded): ArtifactReference => ({
  type: 'artifact',
  id: file.id,
  name: file.name,
  mime: file.mime_type,
  size: file.size_bytes,
  sha256: file.sha256 ?? '',
})
