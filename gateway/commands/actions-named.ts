/**
 * What the actions that a definition names ask of it. Steps may not call what the service does for agents only. A caller who
 * saves a definition, or starts an inline one, must hold the permission to execute each action in it: else a definition would
 * be a way around that permission.
 */
import type { ConfiguredTool } from '../../protocol/agents/definition.ts'
import { permissionOver } from '../../protocol/agents/selectors.ts'
import { builtinOf } from '../../protocol/actions/builtin.ts'
import { refuse, refuseFields, type Refusal } from '../../protocol/errors.ts'
import { actionPlaces } from '../../protocol/rules/workflow-check/actions.ts'
import { brandedPermission } from '../../protocol/access/schema.ts'
import { publishedHandle } from '../../protocol/naming.ts'
import { allows } from '../../protocol/access/roles.ts'
import type { Spec } from '../../protocol/workflows/spec.ts'
import type { Caller } from '../auth/authenticate.ts'
import type { Edge } from '../call.ts'

/**
 * The refusal of a definition whose steps name what they, or their author, may not call; undefined: all is allowed. Actions
 * that a template names are not known yet.
 * @param path of the document that has the steps.
 */
export function refusedActions(
  edge: Pick<Edge, 'world'>,
  { permissions }: Pick<Caller, 'permissions'>,
  definition: Partial<Pick<Spec, 'steps' | 'cleanup'>>,
  path = '',
): Refusal | undefined {
  const impossible = impossibleSteps(edge, definition, path)
  if (impossible) return impossible
  return refusedExecution(
    edge,
    permissions,
    actionPlaces(definition, path)
      .filter(({ name }) => !name.includes('${{'))
      .map(({ field, name }) => ({ field, permission: `actions.execute.${name}` })),
  )
}

/**
 * The refusal of an inline config whose tools its author may not execute; undefined: all is allowed. A pattern needs the
 * permission that covers all names it can match, because it is resolved anew for each turn.
 */
export const refusedTools = (
  edge: Pick<Edge, 'world'>,
  permissions: Caller['permissions'],
  tools: readonly ConfiguredTool[],
): Refusal | undefined =>
  refusedExecution(
    edge,
    permissions,
    tools.map(({ field, selector }) => ({ field, permission: permissionOver(selector) })),
  )

/** The refusal of the first field whose permission is lacking. */
function refusedExecution(
  { world }: Pick<Edge, 'world'>,
  permissions: Caller['permissions'],
  needed: readonly { readonly field: string; readonly permission: string }[],
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

/** The refusal of steps that can never be done, each with its exact place. */
function impossibleSteps(
  { world }: Pick<Edge, 'world'>,
  definition: Partial<Pick<Spec, 'steps' | 'cleanup'>>,
  path: string,
): Refusal | undefined {
  const brand = world.settings.brand.toLowerCase()
  const { cleanup = [] } = definition
  const faults = [
    ...actionPlaces(definition, path)
      .filter(({ name }) => typeof builtinOf(brand, name) === 'string')
      .map(({ field, name }) => ({
        field,
        message: 'only agents call this; a step cannot',
        actual: name,
      })),
    ...actionPlaces({ cleanup }, path)
      .filter(({ name }) => publishedHandle(name) !== undefined)
      .map(({ field, name }) => ({
        field,
        message: 'a step of the cleanup cannot call a workflow',
        actual: name,
      })),
  ]
  return faults.length > 0 ? refuseFields(...faults.slice(0, 50)) : undefined
}
