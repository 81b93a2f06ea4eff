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
   * The records of a project that have changed after a cursor, oldest change first, each once with
   * the cursor of its last change. `of`: id of the project or of the organization. `last`: the
   * cursor up to which the answer is complete. `floor`: changes before this cursor may be missing.
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
   * Which records each reader may read. `gone`: the positions in `records` of those that do not
   * exist. `readable`: for each reader, the positions in `records` of those that it may read.
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
