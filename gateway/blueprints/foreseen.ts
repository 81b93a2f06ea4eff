/**
 * Actor rules that a plan checks in advance, so that a preview refuses what the apply would refuse.
 * The actors use the same functions.
 */
import { readPermissions } from '../../protocol/access/roles.ts'
import type { PlannedChange } from '../../protocol/blueprints/plan.ts'
import type { Step } from '../../protocol/blueprints/steps.ts'
import { memberOf, resourceFacts } from '../../protocol/blueprints/types.ts'
import { type FieldError, type Refusal, refuseFields } from '../../protocol/errors.ts'
import { keepUrl, maskUrl, partUrl } from '../../protocol/masked-url.ts'
import { reservedActionName, reservedTags } from '../../protocol/naming.ts'

const anyPart = { sealed: '', digest: '' }
/** Returns a fault when a URL contains a masked value that the current record does not have. */
function maskFaults(field: string, url: unknown, before: unknown): FieldError[] {
  if (typeof url !== 'string') return []
  const sent = partUrl(url).values.map((value) => (value === null ? null : anyPart))
  const stored =
    typeof before === 'string'
      ? { url: before, parts: partUrl(before).values.map(() => anyPart) }
      : undefined
  const kept = keepUrl(partUrl(url).url, sent, stored)
  return 'fault' in kept ? [{ field, message: kept.fault, actual: maskUrl(url) }] : []
}

/** Returns the refusal with which the resource's actor would answer a command of the plan. */
export function foreseenRefusal(
  { resource_type: type, known }: PlannedChange,
  { row, body }: Step,
  brand: string,
): Refusal | undefined {
  const { rows } = resourceFacts[type]
  if (row !== rows?.create && row !== rows?.change) return undefined
  const urls = (['endpoint', 'url'] as const)
    .filter((field) => Object.hasOwn(resourceFacts[type].fields, field))
    .map((field) => memberOf(resourceFacts[type], field))
  const faults = [
    ...reservedTags(body['tags'] as Record<string, string> | undefined, brand),
    ...(type === 'action' && !known ? reservedActionName(String(body['name']), brand) : []),
    ...(type === 'role' && body['permissions'] !== undefined
      ? readPermissions(body['permissions'] as string[], brand).faults
      : []),
    ...urls.flatMap((member) => maskFaults(member, body[member], known?.record[member])),
  ]
  return faults.length > 0 ? refuseFields(...faults) : undefined
}
