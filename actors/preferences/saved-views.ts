/**
 * The saved views of one project. The id of the actor is the id of the project.
 *
 * Invariants:
 * V1. A private view is visible only to its owner. Other callers get `not_found`.
 * V2. Only its owner and callers that may share views (`may_share`) can change or delete a shared
 *     view. Only callers that may share views can share a view.
 * V3. The numbers of private and shared views do not exceed `savedViewLimits`.
 */
import { brandedPermission } from '../../protocol/access/schema.ts'
import type { Api } from '../../protocol/api.ts'
import { timestamp } from '../../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { patch } from '../../protocol/patch.ts'
import {
  type SavedView,
  type SavedViewCommands,
  type SavedViewEvent,
  type SavedViewExtra,
  savedViewLimits,
} from '../../protocol/preferences/schema.ts'
import type { Actor, Cause } from '../actor.ts'
import { changeOf } from '../configuration.ts'

interface SavedViewsState {
  /** Views by id, in the order of their creation. */
  readonly views: Record<string, SavedView>
}

const all = ({ views }: SavedViewsState): SavedView[] => Object.values(views)

const lacksPermission = (brand: string, what: string): Refusal => {
  const permission = brandedPermission('project.edit', brand.toLowerCase())
  return refuse('permission_denied', { permission }, `To ${what}, you need ${permission}.`)
}

/** Returns the view if the caller may change it; otherwise a refusal. */
function changeable(
  brand: string,
  { views }: SavedViewsState,
  { id, may_share }: { readonly id: string } & SavedViewExtra,
  { principal }: Cause,
): SavedView | Refusal {
  const view = getOwn(views, id)
  if (!view || (!view.shared && view.owner_id !== principal.id)) return refuse('not_found')
  return view.owner_id === principal.id || may_share
    ? view
    : lacksPermission(brand, 'change a shared view of somebody else')
}

/**
 * Refuses another shared view if the project has reached its limit, or another private view if the
 * owner has reached its limit.
 */
function tooMany(state: SavedViewsState, shared: boolean, owner_id: string): Refusal | undefined {
  const views = all(state)
  const limit = shared ? savedViewLimits.shared : savedViewLimits.private_of_principal
  const count = views.filter(
    (view) => view.shared === shared && (shared || view.owner_id === owner_id),
  ).length
  if (count < limit) return undefined
  const message = shared
    ? `A project has at most ${limit} shared views; delete some first.`
    : `A principal has at most ${limit} private views; delete some first.`
  return refuse('conflict', { limit }, message)
}

/** Creates the actor of the saved views of a project. */
export const savedViewsActor = ({
  brand,
}: {
  readonly brand: string
}): Actor<
  SavedViewsState,
  SavedViewEvent,
  Api,
  'saved_views',
  SavedViewCommands,
  {
    'saved_view.create': SavedViewExtra
    'saved_view.update': SavedViewExtra
    'saved_view.delete': SavedViewExtra
  }
> => ({
  kind: 'saved_views',
  initial: () => ({ views: {} }),
  decide: {
    'saved_view.create': (state, input, cause) => {
      const { name, list, filter, columns, sort, shared = false, may_share } = input
      if (shared && !may_share) return lacksPermission(brand, 'share a view')
      const owner_id = cause.principal.id
      const { project } = savedViewLimits
      const refused =
        tooMany(state, shared, owner_id) ??
        (all(state).length < project
          ? undefined
          : refuse('conflict', { limit: project }, `A project has at most ${project} saved views.`))
      if (refused) return refused
      const now = timestamp(cause.at)
      const view: SavedView = {
        id: cause.mint('saved_view'),
        name,
        list,
        ...(filter && Object.keys(filter).length > 0 && { filter }),
        ...(columns?.length && { columns }),
        ...(sort && { sort }),
        shared,
        owner_id,
        created_at: now,
        updated_at: now,
      }
      return { events: [{ type: 'saved_view.created', view }], reply: view }
    },
    'saved_view.update': (state, input, cause) => {
      const view = changeable(brand, state, input, cause)
      if (isRefusal(view)) return view
      const { name, filter, columns, sort, shared, may_share } = input
      if (shared && !view.shared && !may_share) return lacksPermission(brand, 'share a view')
      const refused =
        shared !== undefined && shared !== view.shared
          ? tooMany(state, shared, view.owner_id)
          : undefined
      if (refused) return refused
      const change = changeOf<SavedView>(view, { name, filter, columns, sort, shared }, cause.at)
      if (!change) return { events: [], reply: view }
      return {
        events: [
          {
            type: 'saved_view.updated',
            id: view.id,
            view: change.patch,
            ...((view.shared || change.next.shared) && {
              audited: { name: change.next.name, changes: change.changes },
            }),
          },
        ],
        reply: change.next,
      }
    },
    'saved_view.delete': (state, input, cause) => {
      const view = changeable(brand, state, input, cause)
      return isRefusal(view)
        ? view
        : {
            events: [
              {
                type: 'saved_view.deleted',
                id: view.id,
                ...(view.shared && { audited: { name: view.name } }),
              },
            ],
            reply: undefined,
          }
    },
    'saved_view.drop_private': (state, { owner_id }) => ({
      events: all(state)
        .filter((view) => !view.shared && view.owner_id === owner_id)
        .map(({ id }) => ({ type: 'saved_view.deleted', id })),
      reply: undefined,
    }),
  },
  records: { 'saved_view.update': ({ views }, { id }) => getOwn(views, id) },
  evolve: {
    'saved_view.created': (state, { view }) => {
      state.views[view.id] = view
      return state
    },
    'saved_view.updated': (state, { id, view }) => {
      const known = state.views[id]
      if (known) state.views[id] = patch(known, view)
      return state
    },
    'saved_view.deleted': (state, { id }) => {
      delete state.views[id]
      return state
    },
  },
  ask: {
    visible: (state, { principal_id }) =>
      all(state).filter(({ shared, owner_id }) => shared || owner_id === principal_id),
  },
})
