/**
 * The signing secrets of HTTP triggers in the settings of a loop. Records contain a placeholder
 * instead of a secret. A request that contains the placeholder keeps the stored secret.
 */
import type { FieldError } from '../errors.ts'
import { getOwn } from '../lookup.ts'
import { canonicalJson } from '../rules/canonical-json.ts'
import { isJsonObject } from '../rules/json-object.ts'
import { below } from '../rules/workflow-check/path.ts'
import { type Trigger, triggerKey } from './schema.ts'

/** The text that replaces a signing secret in a record. */
export const REDACTED = '[redacted]'

const FIELD = 'settings.http_triggers'

/** Returns the settings of HTTP triggers by trigger key; undefined if there are none. */
function triggerSettings(settings: unknown): Readonly<Record<string, unknown>> | undefined {
  const triggers = isJsonObject(settings) ? settings['http_triggers'] : undefined
  return isJsonObject(triggers) ? triggers : undefined
}
const secretIn = (trigger: unknown): unknown =>
  isJsonObject(trigger) ? trigger['signing_secret'] : undefined

/** Returns the keys of the triggers for which the settings contain the placeholder of a secret. */
export const placeholdersIn = (settings: unknown): string[] =>
  Object.entries(triggerSettings(settings) ?? {}).flatMap(([key, trigger]) =>
    secretIn(trigger) === REDACTED ? [key] : [],
  )

/** Returns the path of the signing secret of a trigger in a request. */
const secretPath = (key: string): string => below(below(FIELD, key), 'signing_secret')

/** Returns the fault of a placeholder for which no secret is stored. */
export const missingSecret = (key: string): FieldError => ({
  field: secretPath(key),
  message: `is the placeholder of a stored secret, but no secret is stored for ${key}; give the secret itself`,
  actual: REDACTED,
})

/** Returns the faults of the settings of a new loop, for which no secret is stored. */
export const checkNewSecrets = (settings: unknown): FieldError[] =>
  placeholdersIn(settings).map(missingSecret)

/** Returns the first fault in the form of the signing secrets of a request. */
export function secretFault(settings: unknown): FieldError | undefined {
  if (!isJsonObject(settings) || settings['http_triggers'] === undefined) return undefined
  const triggers = triggerSettings(settings)
  if (!triggers)
    return { field: FIELD, message: 'must be an object that maps trigger keys to settings' }
  const invalid = Object.keys(triggers).find((key) => {
    const secret = secretIn(triggers[key])
    return (
      secret !== undefined &&
      (typeof secret !== 'string' || secret.length < 8 || secret.length > 1024)
    )
  })
  return invalid === undefined
    ? undefined
    : { field: secretPath(invalid), message: 'must be a string of 8 to 1024 characters' }
}

/** Returns the keys of the HTTP triggers in a list. */
const httpKeys = (triggers: readonly Trigger[] = []): string[] =>
  triggers.flatMap((trigger, index) =>
    trigger.kind === 'http' ? [triggerKey(trigger, index)] : [],
  )

/**
 * Returns the faults of the settings of one trigger that have no effect. The requests of the trigger
 * would need no signature, although a secret was given. Values are not quoted, because a misplaced
 * value is probably a secret. Values that are stored already may remain.
 */
function ineffectiveFaults(key: string, settings: unknown, stored: unknown): FieldError[] {
  const field = below(FIELD, key)
  const remains = (value: unknown, kept: unknown) =>
    kept !== undefined && canonicalJson(value) === canonicalJson(kept)
  if (!isJsonObject(settings))
    return remains(settings, stored)
      ? []
      : [{ field, message: 'must be an object that contains the signing_secret' }]
  const members = isJsonObject(stored) ? stored : {}
  return Object.entries(settings).flatMap(([name, value]) =>
    name === 'signing_secret' || remains(value, getOwn(members, name))
      ? []
      : [
          {
            field: below(field, name),
            message: 'is not a setting of an HTTP trigger',
            expected: ['signing_secret'],
          },
        ],
  )
}

/**
 * Returns the faults of settings without effect: those for keys that name no HTTP trigger, and those
 * with a wrong form. The requests of the trigger that was meant would need no signature. Settings
 * that are stored already may remain, but a key that names no trigger gets no new secret.
 * @param triggers the triggers of the loop after the request.
 * @param settings the settings in the request.
 * @param stored the loop before the request, if it exists, and the keys for which the request
 *   contains the placeholder of a secret.
 */
export function triggerSettingsFaults(
  triggers: readonly Trigger[] | undefined,
  settings: unknown,
  stored?: {
    readonly triggers?: readonly Trigger[]
    readonly settings?: unknown
    readonly placeholders: readonly string[]
  },
): FieldError[] {
  const keys = httpKeys(triggers)
  const before = httpKeys(stored?.triggers)
  const kept = triggerSettings(stored?.settings) ?? {}
  return Object.entries(triggerSettings(settings) ?? {}).flatMap(([key, trigger]) => {
    const remains =
      getOwn(kept, key) !== undefined &&
      !before.includes(key) &&
      (secretIn(trigger) === undefined || stored?.placeholders.includes(key))
    return keys.includes(key) || remains
      ? ineffectiveFaults(key, trigger, getOwn(kept, key))
      : [
          {
            field: below(FIELD, key),
            message: 'names no HTTP trigger of the loop',
            expected: keys,
            actual: key,
          },
        ]
  })
}
