/**
 * Preparations and query handlers of the API rows for preferences and saved views. They find the
 * preferences of the caller, and check the filter of a view against the query parameters of its
 * list. The other rules are in the actors.
 */
import { allows } from '../../protocol/access/roles.ts'
import {
  type FieldError,
  isRefusal,
  type Refusal,
  refuse,
  refuseFields,
} from '../../protocol/errors.ts'
import {
  type CreateSavedView,
  RowsFilter,
  type SavedView,
  type UpdateSavedView,
  viewedRow,
} from '../../protocol/preferences/schema.ts'
import { faultsOf } from '../../protocol/rules/schema-faults/faults.ts'
import { type Call, type Edge, rows, scopeId } from '../call.ts'
import { type LocalContext, type LocalQuery, localQuery, newestPage } from '../listing.ts'
import type { Prepare, Prepared } from '../prepare.ts'

/** Query parameters that do not select records. The filter of a view may not contain them. */
const besides: ReadonlySet<string> = new Set(['cursor', 'limit', 'include', 'sort', 'order'])

/** Returns the faults of a filter: unknown parameters, and values that do not fit the parameter. */
function filterFaults(
  list: SavedView['list'],
  filter: Readonly<Record<string, unknown>>,
): FieldError[] {
  const row = viewedRow(list)
  const schema = row === undefined ? RowsFilter : rows[row]?.shape.query
  if (!schema) throw new Error(`${row} has no query parameters`)
  const paged = row === undefined ? [] : Object.keys(filter).filter((name) => besides.has(name))
  return paged.length > 0
    ? paged.map((name) => ({ field: `filter.${name}`, message: 'is not part of a filter' }))
    : faultsOf(schema, filter, 'filter').map((fault) => ({
        ...fault,
        field: fault.field === 'filter' ? 'filter' : `filter.${fault.field}`,
      }))
}

const visible = ({ world, project = '', caller }: LocalContext) =>
  world.ask({ project, kind: 'saved_views', id: project }, 'visible', {
    principal_id: caller.principal.id,
  })

const extra = ({ caller }: Call): Prepared => ({
  input: { may_share: allows(caller.permissions, 'project.edit') },
})

async function listOf(edge: Edge, call: Call): Promise<SavedView['list'] | Refusal> {
  const { world } = edge
  const project = scopeId(edge, call)
  const views = await world.ask({ project, kind: 'saved_views', id: project }, 'visible', {
    principal_id: call.caller.principal.id,
  })
  if (isRefusal(views)) return views
  return views.find(({ id }) => id === call.slots['id'])?.list ?? refuse('not_found')
}

/** Preparations of the command rows, by row name. */
export const preferencePreparations: Readonly<Record<string, Prepare>> = {
  'me.save_preferences': (_, { caller, body }) => ({
    id: caller.principal.id,
    reply: { preferences: body['preferences'] },
  }),
  'saved_view.create': (_, call) => {
    const { list, filter = {} } = call.body as CreateSavedView
    const faults = filterFaults(list, filter)
    return faults.length > 0 ? refuseFields(...faults) : extra(call)
  },
  'saved_view.update': async (edge, call) => {
    const { filter } = call.body as UpdateSavedView
    if (!filter) return extra(call)
    const list = await listOf(edge, call)
    if (isRefusal(list)) return list
    const faults = filterFaults(list, filter)
    return faults.length > 0 ? refuseFields(...faults) : extra(call)
  },
  'saved_view.delete': (_, call) => extra(call),
}

/** Handlers of the query rows, by row name. */
export const preferenceQueries: Readonly<Record<string, LocalQuery>> = {
  'me.preferences': localQuery<'me.preferences'>(({ world, project = '', caller }) =>
    world.ask({ project, kind: 'preferences', id: caller.principal.id }, 'get', {}),
  ),
  'saved_view.list': localQuery<'saved_view.list'>(async (context, { list }) => {
    const views = await visible(context)
    if (isRefusal(views)) return views
    const listed = views.filter((view) => list === undefined || view.list === list)
    return newestPage(context, 'saved_view.list', listed)
  }),
  'saved_view.get': localQuery<'saved_view.get'>(async (context, { id }) => {
    const views = await visible(context)
    return isRefusal(views) ? views : (views.find((view) => view.id === id) ?? refuse('not_found'))
  }),
}
