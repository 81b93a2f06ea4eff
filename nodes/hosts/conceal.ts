/** Removes secrets from provider messages, which users see in the records of environments. */
import type { WorkerLaunch } from './provider.ts'

/** Minimum length of a value that is treated as a secret. */
const MIN_SECRET_LENGTH = 16

/** Replaces the given secrets in a text, except those shorter than `MIN_SECRET_LENGTH`. */
export const redactSecrets = (text: string, secrets: readonly string[]): string =>
  secrets
    .filter((secret) => secret.length >= MIN_SECRET_LENGTH)
    .reduce((shown, secret) => shown.replaceAll(secret, '[redacted]'), text)
/** Returns the values of a launch that may be secrets. */
export const secretsOf = ({ variables }: WorkerLaunch): readonly string[] =>
  Object.values(variables)
