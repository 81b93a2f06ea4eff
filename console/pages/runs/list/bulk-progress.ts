/** The progress of an action on many runs. This module needs no browser. */

/** The progress of an action. `refused` maps error messages to numbers of refused runs. */
export interface BulkProgress {
  readonly done: number
  readonly ok: number
  readonly refused: ReadonlyMap<string, number>
}
/** The result of an action on one run. */
export interface BulkResult {
  readonly ok: boolean
  readonly error?: { readonly code: string; readonly message: string }
}

/** Adds the results of actions to the progress so far. */
export function addResults(
  { done, ok, refused }: BulkProgress,
  results: readonly BulkResult[],
): BulkProgress {
  const messages = new Map(refused)
  for (const { ok: good, error } of results) {
    if (good) continue
    const message = error?.message ?? ''
    messages.set(message, (messages.get(message) ?? 0) + 1)
  }
  return {
    done: done + results.length,
    ok: ok + results.filter((one) => one.ok).length,
    refused: messages,
  }
}
