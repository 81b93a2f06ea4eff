/**
 * The edits of a form that shows a record. Only edited fields are sent, and the other fields follow
 * the record. If somebody else changes an edited field, the person decides which value to keep.
 */
import { useState } from 'preact/hooks'
import type { CallInput, CallName } from '../api/client.ts'
import { updateIf } from '../api/save.ts'
import { useLeaveQuestion } from './unsaved.ts'
import { changesOf, conflictsOf } from './value.ts'

type Fields = Readonly<Record<string, unknown>>
interface Versioned {
  readonly id: string
  readonly updated_at: string
}

const withNames = (values: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(names.map((name) => [name, values[name]]))

/** The edits of a form. `T` are its values. */
export interface Edits<T> {
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
  /** Discards all edits. */
  readonly discard: () => void
  /**
   * Updates the record, unless this would overwrite a value that the person has not seen. In that
   * case, `conflicts` names the fields. Edits that are made during the update are kept.
   * @param name a conditional command (`protocol/conditional.ts`).
   * @returns whether the record was updated.
   * @throws ApiError if the service refuses.
   */
  readonly update: <N extends CallName>(name: N, input: CallInput<N>) => Promise<boolean>
}

/**
 * Provides the edits of a form, and asks before the page is left while there are any.
 * @param loaded the newest loaded record.
 * @param valuesOf returns the values of the form for a record. They must be JSON-serializable.
 */
export function useEdits<R extends Versioned, T extends object>(
  loaded: R,
  valuesOf: (record: R) => T,
): Edits<T> {
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
    discard: () => setEdits({}),
    update: async (name, input) => {
      const saved = await updateIf(name, input, (current) => {
        setSeen(current as unknown as R)
        const values = valuesOf(current as unknown as R) as Fields
        return conflictsOf(changes as Fields, bases as Fields, values).length === 0
      })
      if (saved === undefined) return false
      setSeen(saved as unknown as R)
      // A field that was edited again during the request stays edited, based on the saved value.
      const values = valuesOf(saved as unknown as R) as Fields
      setBases((now) => ({ ...now, ...withNames(values, Object.keys(changes)) }) as Partial<T>)
      setEdits(
        (now) =>
          Object.fromEntries(
            Object.entries(now).filter(([field, value]) => value !== (edits as Fields)[field]),
          ) as Partial<T>,
      )
      return true
    },
  }
}
