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
import { type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { publishedHandle } from '../../protocol/naming.ts'
import { actionPlaces, type Naming } from '../../protocol/rules/workflow-check/actions.ts'
import type { Caller } from '../auth/authenticate.ts'
import type { Edge } from '../call.ts'

/**
 * Refuses a definition whose steps refer to an action that a step or the caller may not call.
 * Returns undefined when all actions are allowed. A name that contains a template is not checked,
 * because the name is not known yet.
 * @param path path of the definition in the request, for the refusal.
 */
export function refusedActions(
  edge: Pick<Edge, 'world'>,
  { permissions }: Pick<Caller, 'permissions'>,
  definition: Naming,
  path = '',
): Refusal | undefined {
  const places = actionPlaces(definition, path)
  const impossible = impossibleSteps(edge, places, definition, path)
  if (impossible) return impossible
  const brand = edge.world.settings.brand.toLowerCase()
  const needed: Needed[] = []
  for (const { field, name } of places) {
    if (name.includes('${{')) continue
    needed.push({ field, permission: `actions.execute.${name}` })
    const endpoint = endpointPermission(brand, name)
    if (endpoint !== undefined) needed.push({ field, permission: endpoint })
  }
  return refusedExecution(edge, permissions, needed)
}

/**
 * Refuses an inline agent configuration with a tool that the caller may not execute. Returns
 * undefined when all tools are allowed. A pattern requires the permission that covers every name
 * that the pattern can match, because the pattern is resolved again for each turn.
 */
export const refusedTools = (
  edge: Pick<Edge, 'world'>,
  permissions: Caller['permissions'],
  tools: readonly ConfiguredTool[],
): Refusal | undefined => {
  const brand = edge.world.settings.brand.toLowerCase()
  const groups = builtinGroups(brand)
  return refusedExecution(
    edge,
    permissions,
    tools.flatMap(({ field, selector }) =>
      [...permissionsOver(selector, groups), ...endpointPermissions(brand, selector)].map(
        (permission) => ({ field, permission }),
      ),
    ),
  )
}

/** A permission that a field of the request requires. */
interface Needed {
  readonly field: string
  readonly permission: string
}
function refusedExecution(
  { world }: Pick<Edge, 'world'>,
  permissions: Caller['permissions'],
  needed: readonly Needed[],
): Refusal | undefined {
  const lacking = needed.find(({ permission }) => !allows(permissions, permission))
  return (
    lacking &&
    refuse('permission_denied', {
      permission: brandedPermission(lacking.permission, world.settings.brand.toLowerCase()),
      fields: [{ field: lacking.field, message: 'names an action that you may not execute' }],
    })
  )
}

/** Refuses steps that can never succeed. The refusal lists the locations of at most 50 of them. */
function impossibleSteps(
  { world }: Pick<Edge, 'world'>,
  places: ReturnType<typeof actionPlaces>,
  { cleanup = [] }: Naming,
  path: string,
): Refusal | undefined {
  const brand = world.settings.brand.toLowerCase()
  const faults = [
    ...places
      .filter(
        ({ name }) => typeof builtinOf(brand, name) === 'string' && !isTableAction(brand, name),
      )
      .map(({ field, name }) => ({
        field,
        message: 'can be called only by agents, not by a step',
        actual: name,
      })),
    ...(cleanup.length > 0 ? actionPlaces({ cleanup }, path) : [])
      .filter(({ name }) => publishedHandle(name) !== undefined)
      .map(({ field, name }) => ({
        field,
        message: 'a step of the cleanup cannot call a workflow',
        actual: name,
      })),
  ]
  return faults.length > 0 ? refuseFields(...faults.slice(0, 50)) : undefined
}
