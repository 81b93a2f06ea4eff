/**
 * Handles the API rows that only read. A query is answered by the gateway itself
 * (`queries/local.ts`), by a handler that assembles the response, or by the view of the project's
 * partition. Rows that change state are in `command.ts`.
 */

import { parseTimestamp } from '../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../protocol/errors.ts'
import { getOwn } from '../protocol/lookup.ts'
import type { RowQuestion, ViewRowName } from '../protocol/queries/views.ts'
import { isEmpty } from '../protocol/rules/json-object.ts'
import { namesOf } from './auth/people.ts'
import { viewerOf } from './auth/viewer.ts'
import {
  additionsOf,
  type Call,
  type Edge,
  factsOf,
  operationOf,
  queryOf,
  scopeId,
} from './call.ts'
import { readArtifact, signArtifact } from './commands/artifacts/read.ts'
import { tagHeader } from './http/conditional.ts'
import { sealedPage } from './http/cursor.ts'
import type { Answer } from './http/respond.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'
import type { RunListNames } from './ports.ts'
import { environmentRecords } from './queries/environments.ts'
import { withLeases } from './queries/job-leases.ts'
import { localQueries } from './queries/local.ts'
import { mergePages } from './queries/merge-pages.ts'
import { overviewFor } from './queries/overview.ts'
import { queryRows, searchRows } from './queries/rows.ts'
import { listUsage } from './queries/usage.ts'
import { listSessions, readSession } from './sessions/list.ts'
import { liveTurn, snapshot } from './sessions/transcript/snapshot.ts'

/**
 * A list as views return it. `position`, the position of the last item, is present only when more
 * items follow.
 */
interface Listed {
  readonly items: readonly unknown[]
  readonly position?: unknown
  /** Fields of the response in addition to those of the page. */
  readonly beside?: Readonly<Record<string, unknown>>
}
/** The input of a query: the fields of the call's query string, body and path. */
type Question = Readonly<Record<string, unknown>>
type Ask = (question: Question) => Promise<unknown>
/**
 * Functions for the lists that need more than a query of the project's view, by row name. Some of
 * them query all partitions, for example.
 */
const pages: {
  readonly [N in ViewRowName]?: (
    edge: Edge,
    call: Call,
    question: RowQuestion<N>,
  ) => Promise<unknown>
} = {
  'audit.list': audit,
  'usage.list': listUsage,
  'interaction.list': listInteractions,
  'session.list': listSessions,
  'run.jobs': async (edge, call, question) => {
    const project = scopeId(edge, call)
    const found = await edge.world.view(project, 'run.jobs', {
      ...question,
      viewer: viewerOf(call.caller),
    })
    if (isRefusal(found)) return found
    return { ...found, items: await withLeases(edge.world, project, found.items) }
  },
  'table.query': (edge, call, question) => queryRows(edge.world, scopeId(edge, call), question),
  'table.search': (edge, call, question) => searchRows(edge.world, scopeId(edge, call), question),
}
/** Handlers of the records that the gateway assembles from several sources, by operation name. */
export const records: {
  readonly [N in
    | ViewRowName
    | 'artifact.get'
    | 'artifact.signed_url'
    | keyof typeof environmentRecords]?: (edge: Edge, call: Call) => Promise<unknown>
} = {
  'artifact.get': readArtifact,
  'artifact.signed_url': signArtifact,
  'overview.get': overviewFor,
  'session.get': readSession,
  'session.transcript': snapshot,
  'session.turn_live': liveTurn,
  ...environmentRecords,
}

/**
 * Performs the query of a call. The response contains only the additional fields that the call
 * requests.
 */
export const runQuery = (edge: Edge, call: Call): MaybePromise<Answer | Refusal> =>
  andThen(read(edge, call), (reply) =>
    isRefusal(reply)
      ? reply
      : {
          status: call.row.shape.status ?? 200,
          ...tagHeader(call, reply),
          body: additionsOf(call, cut(call, reply)),
        },
  )
/** Truncates an unpaged list to the `limit` of the query. Pages never exceed it. */
function cut({ query: { limit } }: Call, reply: unknown): unknown {
  const { items, has_more } = (reply ?? {}) as Partial<Listed> & { readonly has_more?: boolean }
  return typeof limit === 'number' && has_more === undefined && items && items.length > limit
    ? { ...(reply as Listed), items: items.slice(0, limit) }
    : reply
}

function read(edge: Edge, call: Call): MaybePromise<unknown> {
  const { world, directory } = edge
  const { caller, project } = call
  const name = operationOf(call)
  const local = getOwn(localQueries, name)
  if (local)
    return local({
      world,
      directory,
      caller,
      input: { ...call.query, ...call.slots },
      ...(project && { project: project.id }),
    })
  const record = getOwn(records, name)
  if (record) return record(edge, call)
  // This cast is safe, because the input was validated with the schemas of the row.
  const list = getOwn(pages, name) as
    | ((edge: Edge, call: Call, question: Question) => Promise<unknown>)
    | undefined
  if (list) return paged(edge, call, (question) => list(edge, call, question))
  const asking = factsOf(call).viewer ? { viewer: viewerOf(caller) } : undefined
  return paged(edge, call, (question) =>
    world.viewRow(scopeId(edge, call), name, asking ? { ...question, ...asking } : question),
  )
}

/**
 * Returns the members of a body without an empty filter or sort, which have the same meaning as
 * absent ones.
 */
const givenIn = (body: Call['body']): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => !isEmpty(value)))

/**
 * Runs a query with the position of its cursor, and adds the sealed cursor of the next page to the
 * response. Unpaged lists and records are returned unchanged.
 */
function paged(edge: Edge, call: Call, ask: Ask): MaybePromise<unknown> {
  const fields =
    (call.row.shape.reply as { properties?: Readonly<Record<string, unknown>> } | undefined)
      ?.properties ?? {}
  const asked = { ...call.query, ...call.body }
  if (!('next_cursor' in fields) && asked['cursor'] === undefined)
    return ask({ ...asked, ...call.slots })
  const { world } = edge
  const { cursor, ...query } = asked
  const binding = {
    project: scopeId(edge, call),
    route: operationOf(call),
    filters: { ...queryOf(call), ...givenIn(call.body), ...call.slots },
  }
  return sealedPage(
    world,
    binding,
    cursor,
    (after) => ask({ ...query, ...call.slots, ...after }) as Promise<Listed | Refusal>,
  ).then((found) => {
    if (isRefusal(found)) return found
    const { page, paging } = found
    return 'next_cursor' in fields
      ? {
          ...namesOfList('data' in fields ? listNames(edge, call) : 'items', page.items),
          ...paging,
          ...page.beside,
        }
      : page
  })
}

/**
 * Returns the fields under which the response contains a list of runs: the configured names, or
 * only `items` for a query with `loop_id` or `source_event_id`. Clients that send these filters
 * read `items`.
 */
const listNames = ({ world }: Edge, { query }: Call): RunListNames =>
  query['loop_id'] !== undefined || query['source_event_id'] !== undefined
    ? 'items'
    : (world.settings.run_list ?? 'both')
const namesOfList = (names: RunListNames, items: unknown): Record<string, unknown> => ({
  ...(names !== 'data' && { items }),
  ...(names !== 'items' && { data: items }),
})

/**
 * Lists the interactions that the caller may read. With `inbox`, lists only the interactions that
 * are addressed to the caller by id or through a role.
 */
async function listInteractions(
  edge: Edge,
  call: Call,
  question: RowQuestion<'interaction.list'>,
): Promise<unknown> {
  const { caller } = call
  const project = scopeId(edge, call)
  const names = await namesOf(edge, project, caller)
  return isRefusal(names)
    ? names
    : edge.world.view(project, 'interaction.list', {
        ...question,
        ...(question.inbox === true && { caller: names }),
        viewer: { ...viewerOf(caller), names },
      })
}

/**
 * Lists the audit log of all partitions, newest first. A project in the path, or a credential of a
 * project, limits the list to that project.
 */
async function audit(
  { world }: Edge,
  { caller, query, project }: Call,
  question: RowQuestion<'audit.list'>,
): Promise<Listed | Refusal> {
  const { scope } = caller
  const own_project = scope.kind === 'project' ? scope.project_id : undefined
  const only = project?.id ?? own_project
  const project_id = question.project_id ?? only
  if (only !== undefined && project_id !== only)
    return own_project === undefined
      ? { items: [] }
      : refuse('forbidden', undefined, 'This key belongs to another project.')
  const answers = await world.everywhere('audit.list', {
    ...question,
    viewer: viewerOf(caller),
    ...(project_id !== undefined && { project_id }),
  })
  const merged = mergePages(answers, Number(query['limit']), (a, b) =>
    a.created_at === b.created_at ? (a.id < b.id ? 1 : -1) : a.created_at < b.created_at ? 1 : -1,
  )
  if (isRefusal(merged)) return merged
  const { items, last } = merged
  return { items, ...(last && { position: [parseTimestamp(last.created_at), last.id] }) }
}
