/** Defines the types that describe audit rules. The rules are in `audited.ts`. */
import type { Entry, Event } from '../../../protocol/entry.ts'
import type { AuditEntry } from '../../../protocol/projects/rows.ts'
import type { Changes } from '../../../protocol/workflows/rows.ts'
import { maskChanges } from './changes.ts'

/** The facts about a changed record that are audited for an event. */
export interface Reading {
  readonly resource_type: string
  readonly resource_id: string
  /** Overrides the action of the rule. */
  readonly action?: Rule['action']
  /** The record's name, if the event contains it; by default the latest known name. */
  readonly name?: string | null | undefined
  /** The changed attributes, without secrets; by default the event's `changes`. */
  readonly changes?: Changes | undefined
}
export interface Rule {
  readonly action: AuditEntry['action']
  /**
   * Returns the audited facts of an event; undefined for an event that is not audited. By default,
   * the changed record is the record with the event's `id` or, without an `id`, the actor itself.
   */
  readonly read: (event: Event, entry: Entry) => Reading | undefined
}
export type Details<E> = (event: E, entry: Entry) => Partial<Reading> | undefined

/** Creates the rule for an event type. */
export const rule = <E extends Event>(
  action: Rule['action'],
  resource_type: string,
  details: Details<E> = () => ({}),
): Rule => ({
  action,
  read: (event, entry) => {
    const { id = entry.id, changes } = event as Event & {
      readonly id?: string
      readonly changes?: Changes
    }
    const told = details(event as E, entry)
    return told && { resource_type, resource_id: id, changes: maskChanges(changes), ...told }
  },
})
