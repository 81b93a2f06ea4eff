/**
 * The text of the credential that the worker of an environment uses to authenticate:
 * `<key prefix><environment id>_<40 hex digits><project tag>`. API keys and personal tokens have an
 * underscore or `c_` after the key prefix, so they cannot be confused with this credential.
 *
 * The host creates the credential and sends only its hash to the environment. The text contains the
 * id of the environment and, as in API keys, a tag that narrows down the project. The gateway needs
 * both to find the owner of the environment, which verifies the hash.
 */
import { isId } from '../ids.ts'

/** Number of random bytes in a credential. */
export const CREDENTIAL_BYTES = 20
/** Length of a project tag, which consists of the last characters of the project's id. */
const TAG_LENGTH = 8
const SECRET = /^[0-9a-f]{40}$/

/** The parts of a credential that are not secret. */
export interface CredentialParts {
  readonly environment_id: string
  /** The last 8 characters of the project's id. Several projects may have the same tag. */
  readonly tag: string
}

/**
 * Builds the credential of the worker of an environment.
 * @param key_prefix prefix of API keys of this installation, without the underscore.
 * @param random `CREDENTIAL_BYTES` random bytes.
 */
export function environmentCredential(
  key_prefix: string,
  { project, environment_id }: { readonly project: string; readonly environment_id: string },
  random: Uint8Array,
): string {
  let secret = ''
  for (const byte of random) secret += byte.toString(16).padStart(2, '0')
  return `${key_prefix}${environment_id}_${secret}${project.slice(-TAG_LENGTH)}`
}

/** Splits a credential. Returns undefined when the text is not the credential of an environment. */
export function parseEnvironmentCredential(
  key_prefix: string,
  text: string,
): CredentialParts | undefined {
  if (!text.startsWith(`${key_prefix}env_`)) return undefined
  const end = text.lastIndexOf('_')
  const environment_id = text.slice(key_prefix.length, end)
  const secret = text.slice(end + 1, -TAG_LENGTH)
  return isId(environment_id, 'environment') && SECRET.test(secret)
    ? { environment_id, tag: text.slice(-TAG_LENGTH) }
    : undefined
}
