/** The records of steps of runs, folded from the patches of run events. */

import { amend, begin } from '../../../protocol/patch.ts'
import { extended } from '../../../protocol/rules/extended.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { RunStep } from '../../../protocol/runs/schema.ts'
import type { Known, Packed } from '../../shapes.ts'
import type { Store } from '../../store.ts'
import { WriteBackCache } from '../../write-back.ts'
import { isActive, type RunRow, runCache } from './run-row.ts'

interface StepRow {
  /** The run. Only its values that never change are used. */
  readonly run: RunRow
  record: RunStep
  stored: boolean
  /** Whether the record was removed, until the run executes the step again. */
  removed?: boolean
}

const known = (run: { readonly id: string; readonly created_at: number }, step: string): Known => ({
  texts: [run.id, `${run.id}:${step}`, step],
  at: run.created_at,
})
/** Returns the record of a stored step; undefined if the run has no such step. */
export function stepOf(
  store: Store,
  run: { readonly n: number; readonly id: string; readonly created_at: number },
  step: string,
): RunStep | undefined {
  const row = store.one<{ record: string }>(
    'SELECT record FROM steps WHERE run = ? AND step = ?',
    run.n,
    step,
  )
  return row && store.shapes.unpack(JSON.parse(row.record) as Packed, known(run, step))
}

// Keys are ids of steps: the id of the run, a colon, and the key of the step.
const stepCache = (store: Store): WriteBackCache<StepRow> =>
  store.cacheOf(
    'steps',
    () =>
      new WriteBackCache(
        (key): StepRow | undefined => {
          const [id, step] = split(key)
          const run = runCache(store).get(id)
          const record = run && stepOf(store, extended(run, { id }), step)
          return record && { run, record, stored: true }
        },
        (row, key) => {
          const [id, step] = split(key)
          const { n, project, created_at } = row.run
          if (row.removed) {
            store.run('DELETE FROM steps WHERE run = ? AND step = ?', n, step)
            row.stored = false
            return
          }
          const packed = JSON.stringify(
            store.shapes.pack(row.record, known({ id, created_at }, step)),
          )
          if (row.stored)
            store.run('UPDATE steps SET record = ? WHERE run = ? AND step = ?', packed, n, step)
          else
            store.run(
              'INSERT INTO steps (run, step, project, record) VALUES (?, ?, ?, ?)',
              n,
              step,
              project,
              packed,
            )
          row.stored = true
        },
        {
          copy: (row) => ({ ...row, record: extended(row.record) }),
          // A partial flush does not store active runs. Therefore, it must not store their steps
          // either: no step is stored before its run.
          changes: (_, key) => isActive(store, split(key)[0]),
        },
      ),
  )
const split = (key: string): [string, string] => {
  const at = key.indexOf(':')
  return [key.slice(0, at), key.slice(at + 1)]
}

/** Removes the records of the steps whose keys begin with one of the prefixes. */
function dropSteps(store: Store, run: RunRow, prefixes: readonly string[]): void {
  const { id } = run.record
  const steps = stepCache(store)
  const stored = store.all<{ step: string }>('SELECT step FROM steps WHERE run = ?', run.n)
  const keys = new Set([...steps.keys(), ...stored.map(({ step }) => `${id}:${step}`)])
  for (const key of keys) {
    const isDropped = prefixes.some((prefix) => key.startsWith(`${id}:${prefix}`))
    const row = isDropped ? steps.edit(key) : undefined
    if (row) row.removed = true
  }
}
/** Applies the part of a run event that concerns steps. */
export function applyStep(store: Store, run: RunRow, event: RunEvent): void {
  if (event.drops) dropSteps(store, run, event.drops)
  const step_key = event.step ?? event.row?.step_key
  if (!event.row || typeof step_key !== 'string') return
  const { id } = run.record
  const key = `${id}:${step_key}`
  const steps = stepCache(store)
  const row = steps.edit(key, run.stored === undefined)
  if (row && !row.removed) {
    row.record = amend(row.record, event.row)
    return
  }
  const record = begin<RunStep>({ id: key, run_id: id, step_key }, event.row)
  if (row) Object.assign(row, { record, removed: false })
  else steps.set(key, { run, record, stored: false })
}

/** Returns the steps of a run, ordered by `seq`. */
export const stepsOf = (
  store: Store,
  { n, project, created_at, record }: Pick<RunRow, 'n' | 'project' | 'created_at' | 'record'>,
): RunStep[] =>
  store
    .all<{ step: string; record: string }>(
      'SELECT step, record FROM steps WHERE run = ? AND project = ? ORDER BY step',
      n,
      project,
    )
    .map((row) =>
      store.shapes.unpack<RunStep>(
        JSON.parse(row.record) as Packed,
        known({ id: record.id, created_at }, row.step),
      ),
    )
    .sort((a, b) => a.seq - b.seq)

/** Returns the number of steps, by status. */
export function stepCounts(steps: readonly RunStep[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of steps) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
