/**
 * The events and internal commands of tables, and the data that gateways and actors exchange in
 * addition to the rows of the API.
 *
 * The rows of a table are stored in the journal and in views. The actor stores only the definition
 * and a window of recent changes. The changes to the rows of a table are numbered from 1. A command
 * about rows contains facts: rows from a view as of a change. The actor applies the later changes
 * in its window to these facts, and so decides on the current rows:
 *
 *     gateway:  table_facts of a view → command with facts → `StaleReply`: repeat with later facts
 *     actor:    facts (as of change n) + window (changes after n) = current rows
 */
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Causation } from '../events/sources.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'
import type { Table, TableRow } from './schema.ts'

/**
 * A row as events and views store it. `data` is complete, including values that the current schema
 * hides (`visibleData`). `identity` is the value of the identity column.
 */
export interface StoredRow extends Omit<TableRow, 'table_id'> {
  readonly identity: string
}
/**
 * The claim of a table on a name: the id of the `table_name` actor of the name, and the number that
 * this actor assigned to the claim.
 */
export interface NameClaim {
  readonly holder: string
  readonly claim: number
}

/** Members of all row events. `table_name`: the name of the table at the time of the event. */
interface RowChange {
  readonly table_name: string
  readonly change: number
  /**
   * The causation of the source event that reports the change. Absent if no run caused the change,
   * and in events of earlier releases.
   */
  readonly causation?: Causation
}
export type TableEvent =
  | (Event & {
      readonly type: 'table.created'
      readonly id: string
      readonly table: Table
      readonly claim: NameClaim
    })
  /** `claim` and `released`: the claims on the new and on the old name, if the name changes. */
  | (Event & {
      readonly type: 'table.updated'
      readonly id: string
      readonly table: Patch<Table>
      readonly changes: Changes
      readonly claim?: NameClaim
      readonly released?: NameClaim
    })
  | (Event & {
      readonly type: 'table.deleted'
      readonly id: string
      readonly name: string
      readonly released: NameClaim
    })
  /** The table claimed its current name again. The new claim replaces the earlier claim. */
  | (Event & { readonly type: 'table.name_kept'; readonly claim: NameClaim })
  /** The claim can no longer be used to create or rename the table. */
  | (Event & { readonly type: 'table.claim_denied'; readonly claim: NameClaim })
  /**
   * `shown`, here and in updates and deletions: the data as readers see it. Present only if the
   * schema hides part of the data.
   */
  | (Event &
      RowChange & {
        readonly type: 'table.row_inserted'
        readonly row: StoredRow
        readonly shown?: JsonObject
      })
  /**
   * The rows of one request, in its order. They share one change number. `groups`: the sizes of the
   * groups of consecutive rows that are published together, by one command for each group. Each row
   * is published by a separate command if the event has a causation, or if `groups` is absent, as
   * in events of earlier releases.
   */
  | (Event &
      RowChange & {
        readonly type: 'table.rows_inserted'
        readonly rows: readonly StoredRow[]
        readonly groups?: readonly number[]
      })
  /**
   * `row`: the row after the update. `changed`: the names of the visible members that differ.
   * `previous`: their values before the update; missing values are omitted.
   * `previous_identity`: present if the identity changed.
   */
  | (Event &
      RowChange & {
        readonly type: 'table.row_updated'
        readonly row: StoredRow
        readonly changed: readonly string[]
        readonly previous: JsonObject
        readonly previous_identity?: string
        readonly shown?: JsonObject
      })
  /** `row`: the row before its deletion. */
  | (Event &
      RowChange & {
        readonly type: 'table.row_deleted'
        readonly row: StoredRow
        readonly shown?: JsonObject
      })

/** Internal commands of a table. */
export type TableCommands = {
  /**
   * Reports a claim that was not confirmed in time. Sent by the actor of the name. Also sent by a
   * gateway that will not use the claim, because its command was refused. If the table has the
   * name, the table confirms the claim. Otherwise, the table releases the claim and never uses it.
   */
  'table.claim_lapsed': { input: NameClaim & { readonly name: string }; reply: undefined }
}
/**
 * Events of the actor of a name. `claim` numbers the claims of the name from 1. `until`: the time,
 * in Unix milliseconds, at which an unconfirmed claim lapses.
 */
export type TableNameEvent =
  | (Event & {
      readonly type: 'table_name.claimed'
      readonly name: string
      readonly table_id: string
      readonly claim: number
      readonly until: number
    })
  | (Event & { readonly type: 'table_name.confirmed' })
  | (Event & {
      readonly type: 'table_name.claim_lapsed'
      readonly name: string
      readonly table_id: string
      readonly claim: number
    })
  | (Event & { readonly type: 'table_name.released' })
/**
 * Internal commands of the actor of a name. Its id is derived from the project and the name.
 * `release` and `confirm` change nothing unless `claim` is the latest claim.
 */
export type TableNameCommands = {
  /**
   * Claims the name for a table. Sent by a gateway before it creates or renames the table. Refused
   * with `already_exists` if another table has or claims the name. A table may claim a name that it
   * already has. The new claim then replaces the earlier one.
   */
  'table_name.claim': {
    input: { readonly name: string; readonly table_id: string }
    reply: { readonly claim: number }
  }
  /** Sent by the table, which now has the name. */
  'table_name.confirm': {
    input: { readonly table_id: string; readonly claim: number }
    reply: undefined
  }
  /** Sent by the table, which no longer has the name, or does not use the claim. */
  'table_name.release': {
    input: { readonly table_id: string; readonly claim: number }
    reply: undefined
  }
  wake: { input: unknown; reply: undefined }
}

/** A row in a view. `data` is absent if it was not requested. */
export type RowFact = Omit<StoredRow, 'data'> & { readonly data?: JsonObject }
/**
 * The requested rows of a table, as of a change: the view has applied all changes up to `through`,
 * and no later change. Requested rows that are not listed do not exist. For a table that does not
 * exist in the view, `through` is 0.
 */
export interface TableFacts {
  readonly through: number
  readonly rows: readonly RowFact[]
}
/** Queries about tables that the service sends to views, in addition to those of API rows. */
export interface TableQueries {
  /** Facts for a command. `content`: whether the data of the rows is included. */
  table_facts: {
    input: {
      readonly id: string
      readonly identities: readonly string[]
      readonly row_ids: readonly string[]
      readonly content: boolean
    }
    reply: TableFacts
  }
}
/** The causation of a change to rows, if a run or a turn of an agent causes it. */
interface Caused {
  readonly causation?: Causation
}
/** Fields that gateways and executors add to the input of commands. */
export type AddedTableInputs = {
  'table.create': { readonly claim: NameClaim }
  /** Present if the request contains a name. */
  'table.update': { readonly claim?: NameClaim }
  /** Facts about the identity of the row, without data. */
  'row.insert': Caused & { readonly facts: TableFacts }
  /** Facts about the identities of all rows of the request, without data. */
  'row.bulk': Caused & { readonly facts: TableFacts }
  /** Facts about the identity of the row, including the data of the row. */
  'row.upsert': Caused & { readonly facts: TableFacts }
  /** Facts with data about the row, and about the identity if the request changes it. */
  'row.update': Caused & { readonly facts: TableFacts }
  /** Facts about the row, with its data. */
  'row.delete': Caused & { readonly facts: TableFacts }
}

/**
 * The reply of a table that cannot decide with the facts, because rows have changed in the
 * meantime. Nothing was stored. The gateway repeats the command under the same id, with facts from
 * a view that has applied the change `stale`.
 */
export interface StaleReply {
  readonly stale: number
}
/**
 * The reply to an insertion. Replies are stored for repeats, so this reply omits the data, which
 * the gateway already has. The data of row i is `insertedData(defaults, sent[i])`.
 */
export interface Inserted {
  readonly ids: readonly string[]
  readonly created_at: string
  readonly defaults: JsonObject
}
/** Maximum length of the data in a stored reply, in characters as JSON. */
export const MAX_REPLY_DATA_LENGTH = 16_384
/**
 * The reply to an update: the row as readers see it. `data` is absent if it is longer than
 * `MAX_REPLY_DATA_LENGTH`. The gateway then reads the row from a view that has applied `change`.
 */
export interface Updated {
  readonly row: Omit<TableRow, 'data'> & { readonly data?: JsonObject }
  readonly change: number
}
/** The replies of tables that the gateway completes before it answers the client. */
export type TableReplies = {
  'row.insert': Inserted | StaleReply
  'row.bulk': Inserted | StaleReply
  'row.upsert':
    | (Inserted & { readonly created: true })
    | (Updated & { readonly created: false })
    | StaleReply
  'row.update': Updated | StaleReply
  'row.delete': StaleReply | undefined
}
/** Whether a reply says that the facts were stale, so that the command needs newer ones. */
export const isStale = (reply: unknown): reply is StaleReply =>
  typeof reply === 'object' && reply !== null && 'stale' in reply
