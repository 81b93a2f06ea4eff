/**
 * The edits of a form that shows a record. Only edited fields are sent, and the other fields follow
 * the record. If somebody else changes an edited field, the person decides which value to keep.
 */
import { useState } from 'preact/hooks'
import { useLeaveQuestion } from './unsaved.ts'
import { changesOf, conflictsOf } from './value.ts'

type Fields = Readonly<Record<string, unknown>>
interface Versioned {
  readonly id: string
  readonly updated_at: string
}

/** The edits of a form. `T` are its values. */
interface Edits<R, T> {
  /** The values to show. */
  readonly shown: T
  /** The values of the stored record. */
  readonly stored: T
  /** The edited values that differ from the stored ones. */
  readonly changes: Partial<T>
  readonly isChanged: boolean
  /** Names of the edited fields that somebody else has changed. */
  readonly conflicts: readonly string[]
  readonly set: (part: Partial<T>) => void
  /** Keeps the edited values of the fields in conflict. */
  readonly keep: () => void
  /** Takes the stored values of the fields in conflict. */
  readonly take: () => void
  /**
   * Notes the current record before an update.
   * @returns whether the update overwrites nothing that the person has not seen.
   */
  readonly accepts: (record: R) => boolean
  /** Must be called with the record after an update. */
  readonly saved: (record: R) => void
}

/**
 * Provides the edits of a form, and asks before the page is left while there are any.
 * @param loaded the newest loaded record.
 * @param valuesOf returns the values of the form for a record. They must be JSON-serializable.
 */
export function useEdits<R extends Versioned, T extends object>(
  loaded: R,
  valuesOf: (record: R) => T,
): Edits<R, T> {
  const [edits, setEdits] = useState<Partial<T>>({})
  /** For each edited field, the stored value at the time when the person began to edit it. */
  const [bases, setBases] = useState<Partial<T>>({})
  /** The record of the last save or check, which may be newer than the loaded one. */
  const [seen, setSeen] = useState(loaded)
  const record = seen.id === loaded.id && seen.updated_at > loaded.updated_at ? seen : loaded
  const stored = valuesOf(record)
  const changes = changesOf(edits, stored)
  const isChanged = Object.keys(changes).length > 0
  const conflicts = conflictsOf(changes as Fields, bases as Fields, stored as Fields)
  useLeaveQuestion(isChanged)
  const without = (names: readonly string[]): Partial<T> =>
    Object.fromEntries(
      Object.entries(edits).filter(([name]) => !names.includes(name)),
    ) as Partial<T>
  return {
    shown: { ...stored, ...edits },
    stored,
    changes,
    isChanged,
    conflicts,
    set: (part) => {
      const next = changesOf({ ...edits, ...part }, stored)
      const known: Fields = changes
      setBases(
        Object.fromEntries(
          Object.keys(next).map((name) => [
            name,
            (name in known ? (bases as Fields) : (stored as Fields))[name],
          ]),
        ) as Partial<T>,
      )
      setEdits(next)
    },
    keep: () => setBases({ ...bases, ...stored }),
    take: () => setEdits(without(conflicts)),
    accepts: (current) => {
      setSeen(current)
      const values = valuesOf(current) as Fields
      return conflictsOf(changes as Fields, bases as Fields, values).length === 0
    },
    saved: (current) => {
      setSeen(current)
      setEdits({})
    },
  }
}
