/**
 * The rows, schemas and events of workflow definitions and their immutable versions. The authoring
 * form is in `spec.ts` and `steps.ts`.
 */

import { type Static, Type } from 'typebox'
import { onlyIncluding } from '../additions.ts'
import { bodyKey, Closed, Handle, pageOf, paging, runPageOf, Tags, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'
import type { Patch } from '../patch.ts'
import { StartWorkflowRun } from '../runs/requests.ts'
import { runAdditions, WorkflowRun } from '../runs/schema.ts'
import { SavedWarnings, savedAdditions } from './saved-warnings.ts'
import { checkSpec, Spec } from './spec.ts'

export const Workflow = Type.Object({
  id: Type.String(),
  handle: Type.String(),
  name: Type.String(),
  description: Type.Optional(Type.String()),
  published_as_tool: Type.Boolean(),
  latest_version: Type.Integer({ minimum: 1 }),
  spec: Type.Optional(Spec),
  tags: Type.Optional(Tags),
  created_by: Type.Optional(Type.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
  warnings: Type.Optional(SavedWarnings),
})
export type Workflow = Static<typeof Workflow>
export const WorkflowVersion = Type.Object({
  definition_id: Type.String(),
  version: Type.Integer(),
  created_by: Type.Optional(Type.String()),
  created_at: Timestamp,
  spec: Type.Optional(Spec),
})
export type WorkflowVersion = Static<typeof WorkflowVersion>

export const CreateWorkflow = Closed({
  name: Type.String({ minLength: 1, maxLength: 160 }),
  spec: Spec,
  handle: Type.Optional(Handle),
  description: Type.Optional(Type.String({ maxLength: 4096 })),
  published_as_tool: Type.Optional(Type.Boolean()),
  tags: Type.Optional(Tags),
})
const UpdateWorkflow = Closed({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 160 })),
  description: Type.Optional(Type.String({ maxLength: 4096 })),
  published_as_tool: Type.Optional(Type.Boolean()),
  spec: Type.Optional(Spec),
  tags: Type.Optional(Tags),
  expected_version: Type.Optional(Type.Integer({ minimum: 1 })),
})
const check = (body: { spec?: Spec }) => (body.spec ? checkSpec(body.spec, 'spec') : [])
const P = '/projects/:project/workflows'
const tag = 'workflows'

export const workflows = {
  'workflow.list': query(`GET ${P}`, {
    summary: 'List workflows, newest first, without their specs',
    tag,
    permission: 'project.view',
    query: Closed(paging),
    reply: pageOf(Workflow),
  }),
  'workflow.create': command(`POST ${P}`, {
    summary: 'Create a workflow with version 1',
    cliExample: '--name "My workflow" --spec @workflow.json',
    tag,
    permission: 'project.edit',
    to: { kind: 'project' },
    body: CreateWorkflow,
    check,
    ...onlyIncluding(savedAdditions),
    reply: Workflow,
    status: 201,
    errors: ['already_exists'],
  }),
  'workflow.get': query(`GET ${P}/:id`, {
    summary: 'One workflow with its latest spec',
    tag,
    permission: 'project.view',
    ...onlyIncluding(savedAdditions),
    reply: Workflow,
    errors: ['not_found'],
  }),
  'workflow.update': command(`PATCH ${P}/:id`, {
    summary: 'Change a workflow; a spec creates the next version',
    tag,
    permission: 'project.edit',
    to: { kind: 'project' },
    body: UpdateWorkflow,
    check,
    ...onlyIncluding(savedAdditions),
    reply: Workflow,
    errors: ['not_found', 'conflict'],
  }),
  'workflow.delete': command(`DELETE ${P}/:id`, {
    summary: 'Delete a workflow and its versions; its runs continue',
    tag,
    permission: 'project.edit',
    to: { kind: 'project' },
    status: 204,
    errors: ['not_found'],
  }),
  'workflow.versions': query(`GET ${P}/:id/versions`, {
    summary: 'Versions, newest first',
    tag,
    permission: 'project.view',
    query: Closed({ include_spec: Type.Optional(Type.Boolean()), ...paging }),
    reply: pageOf(WorkflowVersion),
    errors: ['not_found'],
  }),
  'workflow.runs': query(`GET ${P}/:id/runs`, {
    summary: 'Runs of a workflow, newest first',
    tag,
    permission: 'project.view',
    query: Closed({ ...paging, include: runAdditions.include }),
    additions: runAdditions.additions,
    reply: runPageOf(WorkflowRun),
    errors: ['not_found'],
  }),
  'workflow.run': command(`POST ${P}/:id/runs`, {
    summary: 'Start a run of the latest version',
    cliExample: 'my-workflow --input \'{"order":17}\'',
    keyScope: 'run',
    tag,
    permission: 'runs.operate',
    to: { kind: 'run', mint: 'run' },
    body: StartWorkflowRun,
    key: bodyKey,
    bodyOptional: true,
    ...onlyIncluding(runAdditions),
    reply: WorkflowRun,
    status: 202,
    errors: ['not_found', 'idempotency_key_conflict'],
  }),
} as const

export type WorkflowEvent =
  | (Event & {
      readonly type: 'workflow.created'
      readonly id: string
      readonly workflow: Workflow
      readonly spec: Spec
    })
  | (Event & {
      readonly type: 'workflow.updated'
      readonly id: string
      readonly workflow: Patch<Workflow>
      readonly spec?: Spec
      readonly changes: Changes
    })
  | (Event & { readonly type: 'workflow.deleted'; readonly id: string; readonly name: string })
/** The changed attributes of a record, for the audit log. Secrets and specs are never included. */
export type Changes = Readonly<Record<string, { readonly from?: unknown; readonly to?: unknown }>>
