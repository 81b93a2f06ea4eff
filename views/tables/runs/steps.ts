/** Steps of runs: the folded patches of run events. */

import { patch } from '../../../protocol/patch.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { RunStep } from '../../../protocol/runs/schema.ts'
import { Kept, type Store } from '../../store.ts'
import type { RunRow } from './run-row.ts'

interface StepRow {
  readonly project: number
  /** Number of the run in the view's file. */
  readonly run: number
  readonly record: RunStep
  stored: boolean
}

const keptSteps = (store: Store): Kept<StepRow> =>
  store.kept(
    'steps',
    () =>
      new Kept(
        (key): StepRow | undefined => {
          const [run, step] = split(key)
          const row = store.one<{ project: number; record: string }>(
            'SELECT project, record FROM steps WHERE run = ? AND step = ?',
            run,
            step,
          )
          return (
            row && {
              project: row.project,
              run,
              record: JSON.parse(row.record) as RunStep,
              stored: true,
            }
          )
        },
        (row, key) => {
          const json = JSON.stringify(row.record)
          const [run, step] = split(key)
          if (row.stored)
            store.run('UPDATE steps SET record = ? WHERE run = ? AND step = ?', json, run, step)
          else
            store.run(
              'INSERT INTO steps (run, step, project, record) VALUES (?, ?, ?, ?)',
              run,
              step,
              row.project,
              json,
            )
          row.stored = true
        },
      ),
  )
const split = (key: string): [number, string] => {
  const at = key.indexOf(':')
  return [Number(key.slice(0, at)), key.slice(at + 1)]
}

/** Applies the part of a run event that concerns a step. */
export function applyStep(store: Store, run: RunRow, event: RunEvent): void {
  const step_key = event.step ?? event.row?.step_key
  if (!event.row || typeof step_key !== 'string') return
  const key = `${run.n}:${step_key}`
  const steps = keptSteps(store)
  const row = steps.get(key, run.stored === undefined)
  const known =
    row?.record ??
    ({ id: `${run.record.id}:${step_key}`, run_id: run.record.id, step_key } as RunStep)
  steps.set(key, {
    project: run.project,
    run: run.n,
    record: patch(known, event.row),
    stored: row?.stored ?? false,
  })
}

/** Returns the steps of a run, ordered by `seq`. */
export const stepsOf = (store: Store, { n, project }: RunRow): RunStep[] =>
  store
    .all<{ record: string }>(
      'SELECT record FROM steps WHERE run = ? AND project = ? ORDER BY step',
      n,
      project,
    )
    .map(({ record }) => JSON.parse(record) as RunStep)
    .sort((a, b) => a.seq - b.seq)

/** Returns the number of steps by status. */
export function stepCounts(steps: readonly RunStep[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of steps) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
