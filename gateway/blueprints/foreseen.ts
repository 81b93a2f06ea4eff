/**
 * Checks rules of actors during planning, so that a preview returns the same refusals as the apply.
 * The actors use the same functions.
 */
import { readPermissions, refuseMissingPermission } from '../../protocol/access/roles.ts'
import type { PlannedChange } from '../../protocol/blueprints/plan.ts'
import type { Step } from '../../protocol/blueprints/steps.ts'
import { memberOf, resourceFacts } from '../../protocol/blueprints/types.ts'
import { type FieldError, type Refusal, refuseFields } from '../../protocol/errors.ts'
import { changeFaults, newStatusFaults } from '../../protocol/loops/changes.ts'
import type { CreateLoop, UpdateLoop } from '../../protocol/loops/rows.ts'
import type { Loop } from '../../protocol/loops/schema.ts'
import { placeholdersIn, secretFault } from '../../protocol/loops/secrets.ts'
import { maskUrl, partUrl, resolveMasks } from '../../protocol/masked-url.ts'
import { reservedActionName, reservedTags } from '../../protocol/naming.ts'
import { authorize } from '../auth/authorize.ts'
import type { Call } from '../call.ts'
import { generatedNameFaults } from '../commands/environments/creation.ts'

const anyPart = { sealed: '', digest: '' }
/** Returns a fault when a URL contains a masked value that the current record does not have. */
function maskFaults(field: string, url: unknown, before: unknown): FieldError[] {
  if (typeof url !== 'string') return []
  const sent = partUrl(url).values.map((value) => (value === null ? null : anyPart))
  const stored =
    typeof before === 'string'
      ? { url: before, parts: partUrl(before).values.map(() => anyPart) }
      : undefined
  const kept = resolveMasks(partUrl(url).url, sent, stored)
  return 'fault' in kept ? [{ field, message: kept.fault, actual: maskUrl(url) }] : []
}

/** Returns the permissions of a role's record or body, if it has any. */
const permissionsOf = (role: Readonly<Record<string, unknown>> | undefined, brand: string) =>
  role?.['permissions'] === undefined
    ? undefined
    : readPermissions(role['permissions'] as string[], brand)

/** Returns the faults of a loop that depend on its record, and those of its signing secrets. */
function loopFaults(
  body: Step['body'],
  record: NonNullable<PlannedChange['known']>['record'] | undefined,
): FieldError[] {
  const { settings } = body
  const fault = secretFault(settings)
  if (fault) return [fault]
  return record
    ? changeFaults(record as unknown as Loop, body as UpdateLoop, {
        // A record has the placeholder of each secret that is stored.
        stored: new Set(placeholdersIn(record['settings'])),
        placeholders: placeholdersIn(settings),
      })
    : newStatusFaults(body as CreateLoop)
}

/** Refuses the deletion of an HTTP action by a caller without `project.admin`. */
const removedEndpoint = (
  { resource_type: type, known }: PlannedChange,
  row: Step['row'],
  caller: Call['caller'],
  brand: string,
): Refusal | undefined =>
  type === 'action' &&
  row === resourceFacts.action.rows?.remove &&
  known?.record['endpoint_kind'] === 'http'
    ? authorize(brand, 'project.admin', caller)
    : undefined

/** Returns the refusal that a resource's actor would return for a command of the plan. */
export function foreseenRefusal(
  change: PlannedChange,
  { row, body }: Step,
  caller: Call['caller'],
  brand: string,
): Refusal | undefined {
  const { resource_type: type, known } = change
  const removal = removedEndpoint(change, row, caller, brand)
  if (removal) return removal
  const { rows } = resourceFacts[type]
  if (row !== rows?.create && row !== rows?.change) return undefined
  const urls = (['endpoint', 'url'] as const)
    .filter((field) => Object.hasOwn(resourceFacts[type].fields, field))
    .map((field) => memberOf(resourceFacts[type], field))
  const loop = type === 'loop' ? loopFaults(body, known?.record) : []
  const granted = type === 'role' ? permissionsOf(body, brand) : undefined
  const faults = [
    ...reservedTags(body['tags'] as Record<string, string> | undefined, brand),
    ...(type === 'action' && !known ? reservedActionName(String(body['name']), brand) : []),
    ...(type === 'environment' && !known ? generatedNameFaults(String(body['name'])) : []),
    ...loop,
    ...(granted?.faults ?? []),
    ...urls.flatMap((member) => maskFaults(member, body[member], known?.record[member])),
  ]
  if (faults.length > 0) return refuseFields(...faults)
  if (!granted) return undefined
  const before = permissionsOf(known?.record, brand)?.permissions ?? []
  return refuseMissingPermission(
    [...caller.permissions],
    granted.permissions.filter((permission) => !before.includes(permission)),
    brand,
  )
}
