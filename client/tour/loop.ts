/**
 * The loop of the tour. Its runs are started by commits and by a schedule. In each run, a worker
 * inspects the repository. The run of a commit then waits until the commit is reviewed.
 */

import type { Reply } from '../../protocol/contract.ts'
import type { CreateLoop, loops } from '../../protocol/loops/rows.ts'
import type { Client } from '../client.ts'
import type { Action } from '../worker/options.ts'
import { git } from './repository.ts'

/** Keys of the triggers for commits and for the schedule. */
export const COMMITS = 'commits'
const BEAT = 'beat'
/** Type of the event that a review publishes. */
export const REVIEWED = 'tour.reviewed'
/**
 * Tags of the loops, agents and actions that a tour creates. The cleanup uses them to find what
 * interrupted tours left behind.
 */
export const TAGS = { made_by: 'tour' }
/**
 * Age of an object in milliseconds above which the tour that created it can no longer be running.
 */
export const TOUR_TIMEOUT_MS = 30 * 60_000

/**
 * Returns the action names of one tour. They contain the tour's name, because all workers share the
 * queue and only the tour's own worker can access the repository.
 */
const actionsOf = (tour: string) => ({ count: `tour.count.${tour}`, total: `tour.total.${tour}` })

/**
 * Returns the definition of one tour's loop.
 * @param secret the secret that signs requests to the HTTP trigger: 32 bytes in base64.
 */
export function loopOf(tour: string, secret: string): CreateLoop {
  const { count, total } = actionsOf(tour)
  const retry = { max_attempts: 5 }
  return {
    name: `Tour ${tour}`,
    description: 'Created by the tour and deleted at its end',
    tags: TAGS,
    triggers: [
      { kind: 'http', key: COMMITS },
      { kind: 'schedule', key: BEAT, config: { interval: '10s' } },
    ],
    settings: { http_triggers: { [COMMITS]: { signing_secret: secret } } },
    limits: { wall_clock_timeout: '10m' },
    steps: [
      {
        id: 'count',
        kind: 'action',
        if: `meta.trigger.kind == "http"`,
        retry,
        config: { action_name: count, parameters: { commit: '${{ event.commit }}' } },
      },
      {
        id: 'review',
        kind: 'wait_for_event',
        if: `meta.trigger.kind == "http"`,
        timeout: { duration: '5m', on_timeout: 'fail' },
        config: {
          event_type: REVIEWED,
          match: { commit: '${{ event.commit }}' },
          payload_mapping: { by: 'event.by' },
        },
      },
      {
        id: 'total',
        kind: 'action',
        if: `meta.trigger.kind == "schedule"`,
        retry,
        config: { action_name: total },
      },
    ],
    output: {
      trigger: '${{ meta.trigger.kind }}',
      commit: '${{ event.commit }}',
      subject: '${{ event.subject }}',
      lines: '${{ steps.count.output.lines }}',
      by: '${{ steps.review.output.by }}',
      commits: '${{ steps.total.output.commits }}',
    },
  }
}

/** Creates the action handlers of one tour's worker. */
export function loopActions(tour: string, folder: string): Readonly<Record<string, Action>> {
  const { count, total } = actionsOf(tour)
  return {
    [count]: async ({ commit }) => {
      if (!/^[0-9a-f]{40,64}$/.test(String(commit)))
        throw new Error(`${String(commit)} is not the id of a commit`)
      const { out } = await git(folder, 'show', '--numstat', '--format=', String(commit))
      const rows = out
        .split('\n')
        .filter((row) => row !== '')
        .map((row) => row.split('\t'))
      return {
        files: rows.length,
        lines: rows.reduce((sum, [added, deleted]) => sum + Number(added) - Number(deleted), 0),
      }
    },
    [total]: async () => ({
      commits: Number((await git(folder, 'rev-list', '--count', '--all')).out),
    }),
  }
}

/**
 * Deletes the loops that interrupted tours left behind.
 * @param now Unix milliseconds.
 */
export async function deleteLeftoverLoops(at: Client, now: number): Promise<void> {
  let cursor: string | undefined
  do {
    const page: Reply<(typeof loops)['loop.list']> = await at.loop.list({
      limit: 100,
      ...(cursor !== undefined && { cursor }),
    })
    for (const { id, tags, created_at } of page.items)
      if (tags?.['made_by'] === TAGS.made_by && now - Date.parse(created_at) > TOUR_TIMEOUT_MS)
        await at.loop.delete({ id }).catch(() => {})
    cursor = page.has_more ? page.next_cursor : undefined
  } while (cursor !== undefined)
}
