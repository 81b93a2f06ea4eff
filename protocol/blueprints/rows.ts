/**
 * The rows for blueprints. The published contract leaves these points open, and this service
 * decides them as follows:
 * - An apply needs `project.edit`, and for each resource the permission of its ordinary row.
 * - Drift, export and pruning are additions. Published clients do not see them.
 */
import { Type } from 'typebox'
import { Closed, cutting } from '../common.ts'
import { command, query } from '../contract.ts'
import { checkApply } from './check.ts'
import {
  ApplyRequest,
  ApplyResult,
  BindingList,
  BlueprintKey,
  blueprintAdditions,
  blueprintLimits,
  DeleteResult,
  DriftList,
  Export,
  Include,
  Namespace,
} from './schema.ts'

const P = '/projects/:project/blueprints'
const tag = 'blueprints'
const to = { kind: 'blueprint', found: 'blueprint' } as const
const admin = { tag, permission: 'project.admin', to } as const
const read = { tag, permission: 'project.view', answeredBy: 'gateway' } as const

export const blueprints = {
  'blueprint.apply': command(`POST ${P}/apply`, {
    summary: 'Preview or apply a blueprint',
    tag,
    permission: 'project.edit',
    to,
    body: ApplyRequest,
    check: checkApply,
    query: Closed({ include: Include }),
    additions: blueprintAdditions.additions,
    reply: ApplyResult,
    limit: blueprintLimits.body,
    errors: [
      'not_found',
      'conflict',
      'already_exists',
      'blueprint_ambiguous_name',
      'blueprint_immutable_field',
      'blueprint_owned_elsewhere',
      'blueprint_plan_outdated',
      'blueprint_busy',
    ],
  }),
  'blueprint.bindings': query(`GET ${P}/bindings`, {
    ...read,
    summary: 'Bindings of resources to blueprints',
    query: Closed({
      namespace: Type.Optional(Namespace),
      blueprint_key: Type.Optional(BlueprintKey),
      ...cutting,
      include: Include,
    }),
    reply: BindingList,
  }),
  'blueprint.protect': command(`PUT ${P}/:blueprint_key/protection`, {
    ...admin,
    summary: 'Protect the resources of a blueprint from ordinary changes, or stop protecting them',
    query: Closed({ namespace: Type.Optional(Namespace), include: Include }),
    additions: blueprintAdditions.additions,
    body: Closed({ protected: Type.Boolean() }),
    reply: BindingList,
    errors: ['not_found', 'blueprint_busy'],
  }),
  'blueprint.delete': command(`DELETE ${P}/:blueprint_key`, {
    ...admin,
    summary: 'Delete the resources that a blueprint created, and release the others',
    query: Closed({
      namespace: Type.Optional(Namespace),
      delete_retained: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Also delete the resources that the blueprint adopted',
        }),
      ),
      include: Include,
    }),
    additions: blueprintAdditions.additions,
    reply: DeleteResult,
    errors: ['conflict', 'blueprint_busy'],
  }),
  'blueprint.drift': query(`GET ${P}/:blueprint_key/drift`, {
    ...read,
    summary: 'Fields of bound resources that were changed since the last apply',
    query: Closed({ namespace: Type.Optional(Namespace), ...cutting, include: Include }),
    reply: DriftList,
  }),
  'blueprint.export': query(`GET ${P}/export`, {
    ...read,
    summary: 'The resources of the project, or of one blueprint, in the form of a blueprint',
    query: Closed({
      namespace: Type.Optional(Namespace),
      blueprint_key: Type.Optional(BlueprintKey),
    }),
    reply: Export,
  }),
} as const
