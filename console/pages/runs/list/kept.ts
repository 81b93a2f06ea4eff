/** What the list of runs keeps of each run. It needs no browser. */
import type { Run } from '../../../../protocol/runs/schema.ts'

type Text = string | undefined
/** A run of the list. It has one form, and only what the list shows, so that long lists are small. */
export interface KeptRun {
  readonly id: string
  readonly status: Run['status']
  readonly name: Text
  readonly definition_id: string
  readonly loop_id: Text
  readonly loop_name: Text
  /** The label or type of the source of a loop's run. */
  readonly source: Text
  readonly queue: Text
  readonly external_id: Text
  readonly initiated_by: Text
  readonly error_message: Text
  readonly created_at: string
  readonly started_at: Text
  readonly completed_at: Text
  readonly updated_at: string
}

/** Maximum number of texts that runs share. */
const SHARED = 1000

/** Returns a function that reduces runs to what the list shows. Its results share equal texts. */
export function createRunReducer(): (run: Run) => KeptRun {
  const texts = new Map<string, string>()
  const shared = (text: Text): Text => {
    if (text === undefined) return undefined
    const known = texts.get(text)
    if (known === undefined && texts.size < SHARED) texts.set(text, text)
    return known ?? text
  }
  return (run) => {
    const { created_at, updated_at, started_at, completed_at } = run
    const isLoop = 'loop_id' in run
    return {
      id: run.id,
      status: run.status,
      name: run.name,
      definition_id: isLoop ? '' : (shared(run.definition_id) ?? ''),
      loop_id: isLoop ? shared(run.loop_id) : undefined,
      loop_name: isLoop ? shared(run.loop_name) : undefined,
      source: isLoop ? shared(run.source?.label ?? run.source?.type) : undefined,
      queue: isLoop ? undefined : shared(run.queue),
      external_id: isLoop ? undefined : run.external_id,
      initiated_by: isLoop ? undefined : shared(run.initiated_by),
      error_message: run.error_message,
      created_at,
      started_at: started_at === created_at ? created_at : started_at,
      completed_at: completed_at === updated_at ? updated_at : completed_at,
      updated_at: updated_at === created_at ? created_at : updated_at,
    }
  }
}
