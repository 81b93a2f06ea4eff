/**
 * Acts on the runs that match a filter, one page per request, oldest first. Each page begins after
 * the last run of the previous page, so no run is skipped when another run stops matching the
 * filter.
 *
 * Invariants:
 * B1. The cursor contains the id of the whole action. The command id for each run is derived from
 *     this id, so the action acts on a run at most once, even if a request is repeated.
 * B2. Runs that were created after the first request are excluded. The first request reads all
 *     runs that match. Its cursor contains its time, or the latest creation time of these runs if
 *     that is later, because the clocks of nodes differ.
 * B3. A request with an idempotency key acts on the runs that its first attempt selected. They are
 *     stored before any run is changed.
 */
import { parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { Origin } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal, refuseFields } from '../../../protocol/errors.ts'
import type { SortKey, ViewQueries } from '../../../protocol/queries/views.ts'
import {
  type BulkByFilter,
  type BulkByFilterResult,
  bulkLimits,
  bulkStatuses,
} from '../../../protocol/runs/bulk.ts'
import type { BulkSelection } from '../../../protocol/runs/bulk-request.ts'
import type { Run } from '../../../protocol/runs/schema.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import { type Binding, openCursor, sealCursor } from '../../http/cursor.ts'
import type { Identity } from '../../http/idempotency.ts'
import { originOf } from '../../http/origin.ts'
import { commandRuns } from './each.ts'
import { gateExtra } from './gate.ts'

/** The content of a cursor: the position from which a bulk action continues. */
interface BulkPosition {
  /** Id of the whole action. */
  readonly id: string
  /** Unix milliseconds after which runs were created after the first request (B2). */
  readonly began: number
  /** Sort keys of the last run of the previous page; absent for the first page. */
  readonly after?: readonly SortKey[]
}

/** Performs the bulk action on one page of runs, or returns a preview of it. */
export async function bulkRuns(
  edge: Edge,
  call: Call,
  identity: Identity,
): Promise<BulkByFilterResult | Refusal> {
  const { world } = edge
  const project = scopeId(edge, call)
  const body = call.body as BulkByFilter
  const { action, filter, reason, preview } = body
  const binding: Binding = { project, route: 'run.bulk', filters: { action, filter } }
  const opened = body.after === undefined ? undefined : openCursor(world, binding, body.after)
  if (opened && isRefusal(opened))
    return refuseFields({ field: 'after', message: 'is not a cursor of this action and filter' })
  const position = opened?.position as BulkPosition | undefined
  const id = position?.id ?? identity.command_id
  const now = world.now()
  const question = {
    ...filter,
    status: [...bulkStatuses(body)],
    ...(position && {
      created_before: earlier(filter.created_before, timestamp(Math.floor(position.began) + 1)),
    }),
  }
  const page = await world.view(project, 'run.list', {
    ...question,
    order: 'asc',
    limit: preview ? bulkLimits.preview : bulkLimits.runs,
    ...(position?.after && { after: position.after }),
  })
  if (isRefusal(page)) return page
  const isLast = !preview && page.position === undefined
  const first = position?.began ?? (isLast ? now : await latestTime(edge, project, question, now))
  if (isRefusal(first)) return first
  if (preview) {
    const counted = await world.view(project, 'run.count', question)
    if (isRefusal(counted)) return counted
    const start = position ?? { id, began: first }
    const next = counted.count > 0 || counted.more ? sealCursor(world, binding, start) : null
    return { results: [], next, preview: { ...counted, runs: [...page.items] as Run[] } }
  }
  const origin = originOf(world, call.caller, call.incoming, call.request_id)
  const selected = await firstSelection(edge, project, identity, origin, {
    began: first,
    run_ids: page.items.map(({ id }) => id),
    ...(page.position && { after: page.position }),
  })
  if (isRefusal(selected)) return selected
  const { began, run_ids, after } = selected
  const results = await commandRuns(
    edge,
    {
      project,
      caller: call.caller,
      name: `run.${action}`,
      origin,
      commandId: (run_id) => `${id}.${action}.${run_id}`,
      fingerprint: world.hash(JSON.stringify(['run.bulk', id, action])).slice(0, 40),
      input: {
        ...(reason !== undefined && { reason }),
        ...(action === 'resume' && (await gateExtra(edge, project, call.caller))),
      },
    },
    run_ids,
  )
  return {
    results,
    next: after ? sealCursor(world, binding, { id, began, after }) : null,
  }
}

/**
 * Returns the latest time at which a run that matches was created, or `now` if that is later.
 */
async function latestTime(
  { world }: Edge,
  project: string,
  question: ViewQueries['run.list']['input'],
  now: number,
): Promise<number | Refusal> {
  const newest = await world.view(project, 'run.list', { ...question, order: 'desc', limit: 1 })
  if (isRefusal(newest)) return newest
  return Math.max(now, ...newest.items.map((run) => parseTimestamp(run.created_at) ?? now))
}

/**
 * Returns the runs on which a request acts: those that the first request under the same idempotency
 * key selected, otherwise those of `selection`.
 */
async function firstSelection(
  { world }: Edge,
  project: string,
  { command_id, fingerprint, seed }: Identity,
  origin: Origin,
  selection: BulkSelection,
): Promise<BulkSelection | Refusal> {
  if (seed === undefined || fingerprint === undefined) return selection
  const outcome = await world.command({
    project,
    kind: 'bulk_request',
    id: world.id('bulk_request', seed),
    command_id,
    fingerprint,
    origin,
    name: 'bulk_request.select',
    input: selection,
  })
  return isRefusal(outcome) ? outcome : outcome.reply
}

/**
 * Returns the earlier of two times. An invalid `given` is returned unchanged, so that the view
 * refuses it.
 */
const earlier = (given: string | undefined, bound: string): string =>
  given === undefined || (parseTimestamp(given) ?? -Infinity) > (parseTimestamp(bound) ?? 0)
    ? bound
    : given
