/** The fields of runs that the list of runs keeps in memory. This module needs no browser. */
import type { Run } from '../../../../protocol/runs/schema.ts'
import { packingOf } from '../../../api/packed.ts'

type Text = string | undefined
/** A run in the list. It has only the fields that the list shows, to save memory. */
export interface ListedRun {
  readonly id: string
  readonly status: Run['status']
  readonly name: Text
  readonly definition_id: string
  readonly loop_id: Text
  readonly loop_name: Text
  /** Label of the source of a loop's run, or its type if it has no label. */
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

/** Returns the fields of a run that the list shows. */
export function listedRun(run: Run): ListedRun {
  const isLoop = 'loop_id' in run
  return {
    id: run.id,
    status: run.status,
    name: run.name,
    definition_id: isLoop ? '' : run.definition_id,
    loop_id: isLoop ? run.loop_id : undefined,
    loop_name: isLoop ? run.loop_name : undefined,
    source: isLoop ? (run.source?.label ?? run.source?.type) : undefined,
    queue: isLoop ? undefined : run.queue,
    external_id: isLoop ? undefined : run.external_id,
    initiated_by: isLoop ? undefined : run.initiated_by,
    error_message: run.error_message,
    created_at: run.created_at,
    started_at: run.started_at,
    completed_at: run.completed_at,
    updated_at: run.updated_at,
  }
}

/** Converts runs of the list to values for `PackedItems`, and back. */
export const runPacking = packingOf<ListedRun>([
  'id',
  'status',
  'name',
  'definition_id',
  'loop_id',
  'loop_name',
  'source',
  'queue',
  'external_id',
  'initiated_by',
  'error_message',
  'created_at',
  'started_at',
  'completed_at',
  'updated_at',
])
