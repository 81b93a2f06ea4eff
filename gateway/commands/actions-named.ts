/**
 * Checks the actions that a definition refers to. Steps may not call built-in actions that are only
 * for agents, and cleanup steps may not call workflows. A caller that saves a definition, or starts
 * an inline definition, needs the permission to execute each action in it. For an action on tables,
 * the caller also needs the permission of the endpoint with the same effect. Otherwise the
 * definition would bypass these permissions. Whether the actions exist is not checked here.
 */

import { allows } from '../../protocol/access/roles.ts'
import { brandedPermission } from '../../protocol/access/schema.ts'
import {
  builtinGroups,
  builtinOf,
  endpointPermission,
  endpointPermissions,
  isTableAction,
} from '../../protocol/actions/builtin.ts'
import type { ConfiguredTool } from '../../protocol/agents/definition.ts'
import { permissionsOver } from '../../protocol/agents/selectors.ts'
import { type FieldError, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { publishedHandle } from '../../protocol/naming.ts'
import { actionPlaces, type Naming } from '../../protocol/rules/workflow-check/actions.ts'
import type { Caller } from '../auth/authenticate.ts'
import type { Edge } from '../call.ts'

/**
 * Refuses a definition whose steps refer to an action that a step or the caller may not call.
 * Returns undefined when all actions are allowed.
 * @param path path of the definition in the request, for the refusal.
 */
export function refuseActions(
  edge: Pick<Edge, 'world'>,
  { permissions }: Pick<Caller, 'permissions'>,
  definition: Naming,
  path = '',
): Refusal | undefined {
  const places = actionPlaces(definition, path)
  const brand = edge.world.settings.brand.toLowerCase()
  const impossible = impossibleSteps(brand, places, definition, path)
  if (impossible) return impossible
  for (const { field, name } of places) {
    const endpoint = endpointPermission(brand, name)
    const execution = `actions.execute.${name}`
    const wanted = endpoint === undefined ? [execution] : [execution, endpoint]
    const refused = refusedExecution(brand, permissions, field, wanted)
    if (refused) return refused
  }
  return undefined
}

/**
 * Refuses an inline agent configuration with a tool that the caller may not execute. Returns
 * undefined when all tools are allowed. A pattern requires the permission that covers every name
 * that the pattern can match, because the pattern is resolved again for each turn.
 */
export const refuseTools = (
  edge: Pick<Edge, 'world'>,
  permissions: Caller['permissions'],
  tools: readonly ConfiguredTool[],
): Refusal | undefined => {
  const brand = edge.world.settings.brand.toLowerCase()
  const groups = builtinGroups(brand)
  for (const { field, selector } of tools) {
    const wanted = [...permissionsOver(selector, groups), ...endpointPermissions(brand, selector)]
    const refused = refusedExecution(brand, permissions, field, wanted)
    if (refused) return refused
  }
  return undefined
}

/** Refuses a field that requires permissions, if one of them is not granted. */
function refusedExecution(
  brand: string,
  granted: Caller['permissions'],
  field: string,
  wanted: readonly string[],
): Refusal | undefined {
  const lacking = wanted.find((permission) => !allows(granted, permission))
  return lacking === undefined
    ? undefined
    : refuse('permission_denied', {
        permission: brandedPermission(lacking, brand),
        fields: [{ field, message: 'names an action that you may not execute' }],
      })
}

/** Refuses steps that can never succeed. The refusal lists the locations of at most 50 of them. */
function impossibleSteps(
  brand: string,
  places: ReturnType<typeof actionPlaces>,
  { cleanup = [] }: Naming,
  path: string,
): Refusal | undefined {
  const faults: FieldError[] = []
  for (const { field, name } of places)
    if (typeof builtinOf(brand, name) === 'string' && !isTableAction(brand, name))
      faults.push({ field, message: 'can be called only by agents, not by a step', actual: name })
  for (const { field, name } of cleanup.length > 0 ? actionPlaces({ cleanup }, path) : [])
    if (publishedHandle(name) !== undefined)
      faults.push({ field, message: 'a step of the cleanup cannot call a workflow', actual: name })
  return faults.length > 0 ? refuseFields(...faults.slice(0, 50)) : undefined
}
