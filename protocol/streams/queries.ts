/** The view queries of the `changes` topic. */
import type { Viewer } from '../channels/schema.ts'
import type { ClosableKind, RecordChange } from './changes.ts'

/** A reader of changes. `names`: the id of the viewer, and `role:<name>` for each of its roles. */
export interface ChangeReader {
  readonly viewer: Viewer
  readonly names: readonly string[]
}
export interface StreamQueries {
  /**
   * The records that have changed after a cursor. Each record is listed once, with the cursor of
   * its last change, and the oldest change comes first. `of`: id of the project or of the
   * organization that has the records. `last`: the cursor up to which the answer is complete.
   * `floor`: changes before this cursor may be missing.
   */
  changes: {
    input: { readonly of: string; readonly after: number }
    reply: {
      readonly items: readonly (RecordChange & { readonly cursor: number })[]
      readonly last: number
      readonly floor: number
      readonly late?: boolean
    }
  }
  /**
   * Which of the given records each reader may read. The reply contains indexes of `records`.
   * `gone`: the records that do not exist. `readable`: for each reader, the records that it may
   * read.
   */
  changes_readable: {
    input: {
      readonly records: readonly { readonly kind: ClosableKind; readonly id: string }[]
      readonly readers: readonly ChangeReader[]
    }
    reply: {
      readonly gone: readonly number[]
      readonly readable: readonly (readonly number[])[]
      readonly late?: boolean
    }
  }
}
