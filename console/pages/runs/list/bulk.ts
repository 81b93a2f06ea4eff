/** Performs an action on many runs: on selected ones, or on all that match a filter. */
import { ApiError, call } from '../../../api/client.ts'
import { addResults, type BulkProgress, type BulkResult } from './bulk-progress.ts'
import type { RunFilter } from './filters.ts'

export type BulkAction = 'cancel' | 'retry' | 'resume'
/** The statuses of the runs to which an action applies, by action. */
export const applicableStatuses: Readonly<Record<BulkAction, readonly string[]>> = {
  cancel: ['queued', 'running', 'suspended'],
  retry: ['failed'],
  resume: ['suspended'],
}
/** The runs to act on, by id or by filter. */
export type BulkObject = { readonly ids: readonly string[] } | { readonly filter: RunFilter }

/** Maximum number of runs per request, as in the service. */
const MAX_BATCH = 200

/**
 * Acts on runs in batches, and reports the progress after each batch.
 * @param options.signal stops the action after the current batch.
 * @throws ApiError if a whole batch is refused.
 */
export async function actOn(
  object: BulkObject,
  {
    project,
    action,
    reason,
    onProgress,
    signal,
  }: {
    readonly project: string
    readonly action: BulkAction
    readonly reason: string
    readonly onProgress: (progress: BulkProgress) => void
    readonly signal: AbortSignal
  },
): Promise<void> {
  const why = reason.trim() === '' ? {} : { reason: reason.trim() }
  let progress: BulkProgress = { done: 0, ok: 0, refused: new Map() }
  const add = (results: readonly BulkResult[]): void => {
    progress = addResults(progress, results)
    onProgress(progress)
  }
  if ('filter' in object) {
    let after: string | null | undefined
    while (after !== null && !signal.aborted) {
      const page: { results: readonly BulkResult[]; next: string | null } = await call('run.bulk', {
        project,
        action,
        filter: object.filter as never,
        ...why,
        ...(after !== undefined && { after }),
      })
      add(page.results)
      after = page.next
    }
    return
  }
  for (let at = 0; at < object.ids.length && !signal.aborted; at += MAX_BATCH) {
    const run_ids = object.ids.slice(at, at + MAX_BATCH)
    if (action === 'resume') {
      for (const id of run_ids) {
        if (signal.aborted) return
        add([await resume(project, id, why)])
      }
    } else {
      const name = action === 'cancel' ? 'run.cancel_many' : 'run.retry_many'
      add((await call(name, { project, run_ids, ...why })).results)
    }
  }
}

async function resume(project: string, id: string, why: object): Promise<BulkResult> {
  try {
    await call('run.resume', { project, id, ...why })
    return { ok: true }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { ok: false, error }
  }
}
