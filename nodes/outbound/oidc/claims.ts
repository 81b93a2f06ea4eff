/**
 * Reads a person from the claims of an OpenID provider. Claims come from another system, so they
 * are validated.
 */
import type { SignedInPerson } from '../../../gateway/auth/console/provider.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { cutText } from '../../../protocol/rules/cut-text.ts'
import { isJsonObject } from '../../../protocol/rules/json-object.ts'

export type Claims = Readonly<Record<string, unknown>>
/** Maximum number of groups of a person. Further groups are ignored. */
const MAX_GROUPS = 1000
/** Maximum length of a group in characters. Longer groups are ignored. */
const MAX_GROUP_LENGTH = 256
/** Maximum length of a name in characters. Longer names are truncated. */
const MAX_NAME_LENGTH = 128
/**
 * Pattern of accepted e-mail addresses. They contain no control or format characters, which could
 * change how the surrounding text is displayed.
 */
const ADDRESS = /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u
/** Maximum length of an e-mail address in characters. Longer addresses are ignored. */
const MAX_ADDRESS_LENGTH = 254

const record = (value: unknown): Claims | undefined => (isJsonObject(value) ? value : undefined)
/** Returns a claim by its name, or a nested claim by a path of names separated by dots. */
function claimIn(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const part of name.split('.')) value = getOwn(record(value) ?? {}, part)
  return value
}
/**
 * Returns the groups in a claim, whose value is an array of strings or a single string.
 * @param matters whether a group can have a role; other groups are omitted, and do not count towards
 * `MAX_GROUPS`. By default, every group can have a role.
 */
export function groupsIn(
  claims: Claims,
  name: string,
  matters: (group: string) => boolean = () => true,
): readonly string[] {
  return [claimIn(claims, name)]
    .flat()
    .filter((group) => typeof group === 'string')
    .filter((group) => group !== '' && group.length <= MAX_GROUP_LENGTH && matters(group))
    .slice(0, MAX_GROUPS)
}
/** Whether the claims contain the groups and the address, so that no further request is needed. */
export const isComplete = (claims: Claims, groups_claim: string): boolean =>
  claimIn(claims, groups_claim) !== undefined && typeof claims['email'] === 'string'

/**
 * Returns the person whom the claims describe. `email` is present only if the provider reports the
 * address as verified.
 * @param matters whether a group can have a role; by default, every group can.
 */
export function personOf(
  issuer: string,
  subject: string,
  claims: Claims,
  groups_claim: string,
  matters?: (group: string) => boolean,
): SignedInPerson {
  const { email: address, email_verified } = claims
  const isVerified = email_verified === true || email_verified === 'true'
  const email =
    isVerified &&
    typeof address === 'string' &&
    address.length <= MAX_ADDRESS_LENGTH &&
    ADDRESS.test(address)
      ? address
      : undefined
  const name = [claims['name'], claims['preferred_username'], address, subject]
    .map((one) =>
      typeof one === 'string'
        ? cutText(one.replaceAll(/\p{C}+/gu, ' ').trim(), MAX_NAME_LENGTH)
        : '',
    )
    .find((one) => one !== '')
  return {
    issuer,
    subject,
    name: name ?? 'unnamed',
    ...(email !== undefined && { email }),
    groups: groupsIn(claims, groups_claim, matters),
  }
}
