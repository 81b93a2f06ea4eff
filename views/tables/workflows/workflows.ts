/** Stores and lists workflow definitions, and their versions with specs. */

import { parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { Event, PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { patch } from '../../../protocol/patch.ts'
import type { Workflow, WorkflowEvent, WorkflowVersion } from '../../../protocol/workflows/rows.ts'
import type { Spec } from '../../../protocol/workflows/spec.ts'
import { newestRecords, recordWith } from '../../newest.ts'
import { type Page, type Paging, readPage } from '../../page.ts'
import type { Store } from '../../store.ts'

/** Applies the workflow events of an entry of a project. */
export function applyWorkflows(store: Store, { entry }: PlacedEntry): void {
  const project = store.numberOf(entry.project)
  for (const any of entry.events as readonly Event[]) {
    const event = any as WorkflowEvent
    const at = timestamp(entry.origin.at)
    if (event.type === 'workflow.created') {
      const { spec: _, ...record } = event.workflow
      store.run(
        'INSERT OR REPLACE INTO workflows (id, project, handle, created_at, record) VALUES (?, ?, ?, ?, ?)',
        event.id,
        project,
        record.handle,
        parseTimestamp(record.created_at) ?? entry.origin.at,
        JSON.stringify(record),
      )
      addVersion(
        store,
        project,
        {
          definition_id: event.id,
          version: record.latest_version,
          ...(record.created_by !== undefined && { created_by: record.created_by }),
          created_at: record.created_at ?? at,
        },
        event.spec,
      )
    } else if (event.type === 'workflow.updated') {
      const known = recordWith<Workflow>(store, 'workflows', project, event.id)
      if (!known) continue
      const { spec: _, ...record } = patch(known, event.workflow)
      store.run(
        'UPDATE workflows SET handle = ?, record = ? WHERE id = ?',
        record.handle,
        JSON.stringify(record),
        event.id,
      )
      if (event.spec)
        addVersion(
          store,
          project,
          {
            definition_id: event.id,
            version: record.latest_version,
            created_by: entry.origin.principal.id,
            created_at: at,
          },
          event.spec,
        )
    } else if (event.type === 'workflow.deleted') {
      store.run('DELETE FROM versions WHERE definition = ? AND project = ?', event.id, project)
      store.run('DELETE FROM workflows WHERE id = ? AND project = ?', event.id, project)
    }
  }
}
const addVersion = (store: Store, project: number, version: WorkflowVersion, spec: Spec) =>
  store.run(
    'INSERT OR REPLACE INTO versions (definition, version, project, record, spec) VALUES (?, ?, ?, ?, ?)',
    version.definition_id,
    version.version,
    project,
    JSON.stringify(version),
    JSON.stringify(spec),
  )

/** The refusal for a workflow that the project does not have. */
export const missingWorkflow: Refusal = refuse(
  'not_found',
  { resource: 'workflow' },
  'There is no such workflow in this project.',
)

/** Returns a workflow by id or handle, without its spec; undefined if it is unknown. */
export function findWorkflow(store: Store, project: number, name: string): Workflow | undefined {
  const known = recordWith<Workflow>(store, 'workflows', project, name)
  if (known) return known
  const row = store.one<{ record: string }>(
    'SELECT record FROM workflows WHERE project = ? AND handle = ?',
    project,
    name,
  )
  return row && (JSON.parse(row.record) as Workflow)
}

/** Returns workflows of a project, newest first, without their specs. */
export const workflowList = (store: Store, project: number, input: Paging): Page<Workflow> =>
  newestRecords(store, 'workflows', project, [], input)

/** Returns a workflow with its latest spec, or `not_found` if there is no such workflow. */
export function workflowGet(
  store: Store,
  project: number,
  input: { readonly id: string },
): Workflow | Refusal {
  const workflow = findWorkflow(store, project, input.id)
  if (!workflow) return missingWorkflow
  const latest = store.one<{ spec: string }>(
    'SELECT spec FROM versions WHERE definition = ? AND version = ? AND project = ?',
    workflow.id,
    workflow.latest_version,
    project,
  )
  return { ...workflow, ...(latest && { spec: JSON.parse(latest.spec) as Spec }) }
}

/**
 * Returns versions of a workflow, newest first, or `not_found` if there is no such workflow. The
 * versions contain their specs only on request.
 */
export function workflowVersions(
  store: Store,
  project: number,
  input: Paging & { readonly id: string; readonly include_spec?: boolean },
): Page<WorkflowVersion> | Refusal {
  const workflow = findWorkflow(store, project, input.id)
  if (!workflow) return missingWorkflow
  const { include_spec = false } = input
  return readPage<{ readonly record: string; readonly spec: string }, WorkflowVersion>(
    store,
    {
      select: `SELECT version, record, ${include_spec ? 'spec' : "'' AS spec"} FROM versions`,
      conditions: [
        ['definition = ?', workflow.id],
        ['project = ?', project],
      ],
      order: ['version'],
      direction: 'DESC',
    },
    input,
    (row) => ({
      ...(JSON.parse(row.record) as WorkflowVersion),
      ...(include_spec && { spec: JSON.parse(row.spec) as Spec }),
    }),
  )
}
