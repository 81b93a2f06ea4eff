/**
 * Preferences of principals, and saved views of lists: schemas, limits, events and internal
 * commands. Both are for programs with a user interface, such as the console. The service itself
 * uses neither.
 */
import { type Static, Type } from 'typebox'
import { Closed, Id, JsonObject, sizeOf, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'
import type { Patch } from '../patch.ts'
import { QueryRows, SearchRows } from '../tables/schema.ts'
import type { Changes } from '../workflows/rows.ts'

/**
 * Limits of preferences: size in bytes as JSON, and levels of nesting. The object itself is level
 * 1.
 */
export const preferenceLimits = { bytes: 32_768, levels: 8 } as const

/**
 * Limits of saved views. `bytes`: size of one view as JSON. The others are numbers of views;
 * `project` counts all views of a project.
 */
export const savedViewLimits = {
  bytes: 3072,
  shared: 200,
  private_of_principal: 50,
  project: 2000,
} as const

export const Preferences = Type.Object({
  preferences: JsonObject,
  version: Type.Integer({
    minimum: 0,
    description:
      'Version of the preferences; increases by one with every change; 0 before the first change',
  }),
  updated_at: Type.Optional(Timestamp),
})
export type Preferences = Static<typeof Preferences>
export const SavePreferences = Closed({
  preferences: JsonObject,
  expected_version: Type.Optional(
    Type.Integer({
      minimum: 0,
      description:
        'Version that the caller has read; if the present version differs, the request is ' +
        'refused with 409',
    }),
  ),
})
type SavePreferences = Static<typeof SavePreferences>

const levelsOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? 1 + Object.values(value).reduce((most: number, item) => Math.max(most, levelsOf(item)), 0)
    : 0
/** Returns the faults that schemas cannot detect in preferences. */
export function checkPreferences({ preferences }: SavePreferences): FieldError[] {
  const { bytes, levels } = preferenceLimits
  const field = 'preferences'
  const depth = levelsOf(preferences)
  return [
    ...(sizeOf(JSON.stringify(preferences), bytes) > bytes
      ? [{ field, message: `must have at most ${bytes} bytes as JSON` }]
      : []),
    ...(depth > levels
      ? [{ field, message: `must have at most ${levels} levels`, actual: depth }]
      : []),
  ]
}

/** Events of a principal's preferences. */
export type PreferencesEvent =
  | (Event & {
      readonly type: 'preferences.saved'
      readonly preferences: JsonObject
      readonly version: number
      readonly updated_at: string
    })
  /** The principal was deleted. */
  | (Event & { readonly type: 'preferences.cleared' })
/** Internal commands of preferences. */
export type PreferencesCommands = {
  /** Deletes the preferences. Sent by the project after the principal was deleted. */
  'preferences.clear': { input: unknown; reply: undefined }
}
/**
 * The reply of the actor does not contain the preferences, because the gateway has just sent them
 * to the actor.
 */
export interface PreferencesReplies {
  'me.save_preferences': Omit<Preferences, 'preferences'>
}

/**
 * The lists for which views can be saved, each with the resource whose row `<resource>.list`
 * returns the list. Views of the rows of a table (`rows`) can also be saved.
 */
const viewedResources = {
  runs: 'run',
  interactions: 'interaction',
  sessions: 'session',
  loops: 'loop',
  workflows: 'workflow',
  agents: 'agent',
  events: 'event',
  artifacts: 'artifact',
  environments: 'environment',
  channels: 'channel',
  tables: 'table',
  workers: 'worker',
  audit: 'audit',
  usage: 'usage',
} as const
type ViewedResource = keyof typeof viewedResources
type ViewedList = ViewedResource | 'rows'
/**
 * Returns the name of the API row that returns a list. The filter of a saved view of the list has
 * the query parameters of this API row. Returns undefined for `rows`, whose filter has the schema
 * `RowsFilter`.
 */
export const viewedRow = (list: ViewedList) =>
  list === 'rows' ? undefined : (`${viewedResources[list]}.list` as const)
/** The filter of a saved view of table rows: members of `table.query` and `table.search`. */
export const RowsFilter = Closed({
  table_id: Id,
  filter: QueryRows.properties.filter,
  sort: QueryRows.properties.sort,
  query: Type.Optional(SearchRows.properties.query),
  mode: SearchRows.properties.mode,
})
const List = Type.Enum([...(Object.keys(viewedResources) as ViewedResource[]), 'rows' as const])

const Columns = Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
  maxItems: 32,
  uniqueItems: true,
  description: 'Names of the columns to show, in order',
})
const Sort = Closed({
  by: Type.String({ minLength: 1, maxLength: 64 }),
  order: Type.Enum(['asc', 'desc']),
})
const Filter = Type.Record(Type.String(), Type.Unknown(), {
  description:
    'Query parameters of the list with their values; paging parameters and `include` are ' +
    'refused. For `rows`: `table_id`, and members of `table.query` and `table.search`',
})
const Name = Type.String({ minLength: 1, maxLength: 128, pattern: '\\S' })

export const SavedView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  list: List,
  filter: Type.Optional(JsonObject),
  columns: Type.Optional(Type.Array(Type.String())),
  sort: Type.Optional(Sort),
  shared: Type.Boolean({
    description: 'Whether the view is visible to all principals that may view the project',
  }),
  owner_id: Type.String({ description: 'Id of the principal that created the view' }),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type SavedView = Static<typeof SavedView>
export const ListSavedViews = { list: Type.Optional(List) }
const shown = {
  filter: Type.Optional(Filter),
  columns: Type.Optional(Columns),
  sort: Type.Optional(Sort),
  shared: Type.Optional(
    Type.Boolean({
      description:
        'Whether the view is shared with the project; requires the permission project.edit',
    }),
  ),
}
export const CreateSavedView = Closed({
  name: Name,
  list: List,
  ...shown,
})
export type CreateSavedView = Static<typeof CreateSavedView>
export const UpdateSavedView = Closed({
  name: Type.Optional(Name),
  ...shown,
})
export type UpdateSavedView = Static<typeof UpdateSavedView>
/** Returns the faults that schemas cannot detect in the members of a saved view. */
export const checkSavedView = (body: CreateSavedView | UpdateSavedView): FieldError[] => {
  const { bytes } = savedViewLimits
  return sizeOf(JSON.stringify(body), bytes) > bytes
    ? [{ field: 'filter', message: `the view must have at most ${bytes} bytes as JSON` }]
    : []
}

/**
 * The data that the audit log shows about a view that is shared, or was shared before the change.
 * Private views are not audited, because only their owner can see them. Events of earlier releases
 * lack the data.
 */
interface AuditedView {
  readonly name: string
}
/** Events of a project's saved views. */
export type SavedViewEvent =
  | (Event & { readonly type: 'saved_view.created'; readonly view: SavedView })
  | (Event & {
      readonly type: 'saved_view.updated'
      readonly id: string
      readonly view: Patch<SavedView>
      readonly audited?: AuditedView & { readonly changes: Changes }
    })
  | (Event & {
      readonly type: 'saved_view.deleted'
      readonly id: string
      readonly audited?: AuditedView
    })
/** Internal commands of saved views. */
export type SavedViewCommands = {
  /**
   * Deletes the private views of a principal. Sent by the project after the principal was deleted.
   */
  'saved_view.drop_private': { input: { readonly owner_id: string }; reply: undefined }
}
/**
 * Data that the gateway adds to commands about saved views. `may_share`: whether the caller may
 * share views, and change the shared views of other principals.
 */
export interface SavedViewExtra {
  readonly may_share: boolean
}
