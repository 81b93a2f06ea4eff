/** Removes secrets from messages of providers, which people see in the records of environments. */
import type { WorkerLaunch } from './provider.ts'

/** Length from which a value may be a secret. */
const MIN_SECRET = 16

/** Returns a text without the given secrets. */
export const conceal = (text: string, secrets: readonly string[]): string =>
  secrets
    .filter((secret) => secret.length >= MIN_SECRET)
    .reduce((shown, secret) => shown.replaceAll(secret, '[redacted]'), text)
/** The values of a launch that may be secrets. */
export const secretsOf = ({ variables }: WorkerLaunch): readonly string[] =>
  Object.values(variables)
