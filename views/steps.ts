/** Steps of runs: the patches of run events, folded. */
import type { RunEvent, RunStep } from '../protocol/api/runs.ts'
import type { Placed } from '../protocol/entry.ts'
import { patch } from '../protocol/patch.ts'
import { Kept, type Store } from './store.ts'

interface StepRow {
  readonly project: string
  readonly record: RunStep
  stored: boolean
}

const keptSteps = (store: Store): Kept<StepRow> => store.kept('steps', () => new Kept(
  (id): StepRow | undefined => {
    const [run, step] = split(id)
    const row = store.one<{ project: string; record: string }>('SELECT project, record FROM steps WHERE run = ? AND step = ?', run, step)
    return row && { project: row.project, record: JSON.parse(row.record) as RunStep, stored: true }
  },
  (row, id) => {
    const [run, step] = split(id)
    const { seq = 0, status = 'pending' } = row.record
    if (row.stored) store.run('UPDATE steps SET seq = ?, status = ?, record = ? WHERE run = ? AND step = ?', seq, status, JSON.stringify(row.record), run, step)
    else store.run('INSERT INTO steps (run, step, project, seq, status, record) VALUES (?, ?, ?, ?, ?, ?)', run, step, row.project, seq, status, JSON.stringify(row.record))
    row.stored = true
  },
))
// Ids of runs hold no colon; keys of steps may.
const split = (id: string): [string, string] => {
  const at = id.indexOf(':')
  return [id.slice(0, at), id.slice(at + 1)]
}

/** Apply the step's part of a run event. */
export function applyStep(store: Store, { entry }: Placed, event: RunEvent): void {
  const key = event.step ?? event.row?.step_key
  if (!event.row || typeof key !== 'string') return
  const id = `${entry.id}:${key}`
  const steps = keptSteps(store)
  const row = steps.get(id)
  const known = row?.record ?? ({ id, run_id: entry.id, step_key: key } as RunStep)
  steps.set(id, { project: entry.project, record: patch(known, event.row), stored: row?.stored ?? false })
}

/** The steps of a run in their order. */
export const stepsOf = (store: Store, project: string, run: string): RunStep[] =>
  store.all<{ record: string }>('SELECT record FROM steps WHERE run = ? AND project = ? ORDER BY seq, step', run, project).map(({ record }) => JSON.parse(record) as RunStep)

/** How many steps of a run have each status. */
export function stepCounts(steps: readonly RunStep[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of steps) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
