/**
 * The signing secrets of HTTP triggers in the settings of a loop. Records contain a placeholder
 * instead of a secret. A request that contains the placeholder keeps the stored secret.
 */
import type { FieldError } from '../errors.ts'
import { isJsonObject } from '../rules/json-object.ts'
import { below } from '../rules/workflow-check/path.ts'

/** The text that replaces a signing secret in a record. */
export const REDACTED = '[redacted]'

/** Returns the path of the signing secret of a trigger in a request. */
export const secretPath = (key: string): string =>
  below(below('settings.http_triggers', key), 'signing_secret')

/** Returns the fault of a placeholder for which no secret is stored. */
export const missingSecret = (key: string): FieldError => ({
  field: secretPath(key),
  message: `is the placeholder of a stored secret, but no secret is stored for ${key}; give the secret itself`,
  actual: REDACTED,
})

/** Returns the faults of the settings of a new loop, for which no secret is stored. */
export function checkNewSecrets(settings: unknown): FieldError[] {
  const triggers = isJsonObject(settings) ? settings['http_triggers'] : undefined
  if (!isJsonObject(triggers)) return []
  return Object.entries(triggers).flatMap(([key, trigger]) =>
    isJsonObject(trigger) && trigger['signing_secret'] === REDACTED ? [missingSecret(key)] : [],
  )
}
