/**
 * The rules for a change of a loop that depend on the stored loop. The actor applies them, and the
 * preview of a blueprint applies them in advance.
 */
import type { FieldError } from '../errors.ts'
import { getOwn } from '../lookup.ts'
import { checkDefaultConfig, checkLoop } from './check.ts'
import type { CreateLoop, UpdateLoop } from './rows.ts'
import { type Authored, authoring, httpHandle, type Loop, triggerKey } from './schema.ts'
import { missingSecret, triggerSettingsFaults } from './secrets.ts'

/** The fields of a stored loop on which the rules depend. */
type StoredLoop = Authored & Pick<Loop, 'agent_id' | 'settings' | 'status' | 'default_config'>

/** The signing secrets that a loop and a request contain, by trigger key. */
export interface SecretKeys {
  /** The keys for which the loop stores a secret. */
  readonly stored: ReadonlySet<string>
  /** The keys for which the request contains the placeholder of a secret. */
  readonly placeholders: readonly string[]
}

const hasSteps = ({ steps = [] }: Pick<Authored, 'steps'>): boolean => steps.length > 0
const needsSteps: FieldError = {
  field: 'status',
  message: 'a loop without steps cannot be active',
  actual: 'active',
}

/** Returns the members of a request that create the next version of the loop. */
export const authoredIn = (request: Authored): Authored =>
  Object.fromEntries(
    Object.keys(authoring).flatMap((name) => {
      const value = getOwn(request as Readonly<Record<string, unknown>>, name)
      return value === undefined ? [] : [[name, value]]
    }),
  ) as Authored

/** Returns the status of a new loop. A loop without steps is a draft by default. */
export const newStatus = (request: Pick<CreateLoop, 'status' | 'steps'>) =>
  request.status ?? (hasSteps(request) ? 'active' : 'draft')

/** Returns the status of a loop after a change. A draft that gets steps becomes active. */
export const changedStatus = (record: StoredLoop, change: UpdateLoop) =>
  change.status ??
  (record.status === 'draft' && !hasSteps(record) && hasSteps({ ...record, ...authoredIn(change) })
    ? 'active'
    : record.status)

/** Returns the faults of the status of a new loop. */
export const newStatusFaults = (request: Pick<CreateLoop, 'status' | 'steps'>): FieldError[] =>
  newStatus(request) === 'active' && !hasSteps(request) ? [needsSteps] : []

/** Returns the faults of a change of a loop. */
export function changeFaults(
  record: StoredLoop,
  change: UpdateLoop,
  secrets: SecretKeys,
): FieldError[] {
  const { stored, placeholders } = secrets
  const authored = authoredIn(change)
  const { agent_id } = change
  const whole = { ...record, ...authored, ...(agent_id !== undefined && { agent_id }) }
  const checked = Object.keys(authored).length > 0 || agent_id !== undefined
  return [
    ...(checked ? checkLoop(whole) : []),
    ...(change.config !== undefined || change.default_config !== undefined
      ? checkDefaultConfig({
          ...whole,
          ...(change.default_config !== undefined && { default_config: change.default_config }),
        })
      : []),
    ...(changedStatus(record, change) === 'active' && !hasSteps(whole) ? [needsSteps] : []),
    ...triggerSettingsFaults(whole.triggers, change.settings, { ...record, placeholders }),
    ...placeholders.filter((key) => !stored.has(key)).map(missingSecret),
    ...unsignedHandles(record, change, secrets),
  ]
}

/**
 * Returns the faults of triggers whose handle would no longer require signed requests, because the
 * key changes to which the secret belongs. A change that contains the settings states whether the
 * secret is still required.
 */
function unsignedHandles(
  record: StoredLoop,
  { triggers = [], settings }: UpdateLoop,
  { stored }: SecretKeys,
): FieldError[] {
  if (settings !== undefined) return []
  const signed = new Map(
    (record.triggers ?? []).flatMap((trigger, index) => {
      const key = triggerKey(trigger, index)
      const handle = httpHandle(trigger)
      return handle !== undefined && stored.has(key) ? [[handle, key] as const] : []
    }),
  )
  return triggers.flatMap((trigger, index) => {
    const handle = httpHandle(trigger)
    const key = handle === undefined ? undefined : signed.get(handle)
    return key === undefined || stored.has(triggerKey(trigger, index))
      ? []
      : [
          {
            field: `triggers[${index}].key`,
            message:
              `the signing secret of this handle is stored for ${key}; give the settings too, ` +
              'with a secret for the new key, or without one to accept unsigned requests',
            actual: triggerKey(trigger, index),
          },
        ]
  })
}
