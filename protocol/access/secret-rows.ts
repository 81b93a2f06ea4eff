/**
 * Secrets of a project: named sets of texts that the service uses on the project's behalf, such as
 * the key that signs callbacks of interactions. The published contract refers to secrets
 * (`secret_ref`) but does not define rows that create them. The rows of this file store and delete
 * secrets and list their names. No reply contains a value.
 */
import { type Static, Type } from 'typebox'
import { Closed, cutting, listOf, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'

/** Name of the entry that contains the key for signing callbacks: 32 bytes in base64. */
export const SIGNING_KEY = 'signing_key_b64'
export const Secret = Type.Object({
  name: Type.String(),
  version: Type.Integer({
    minimum: 1,
    description: 'Number of the latest version, which references without a version use',
  }),
  versions: Type.Array(Type.Integer()),
  entries: Type.Array(Type.String(), { description: 'Names of the entries of the latest version' }),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Secret = Static<typeof Secret>
const ENTRY_NAME = '^[A-Za-z0-9_.-]{1,128}$'
const PutSecret = Closed({
  entries: Type.Record(
    Type.String({ pattern: ENTRY_NAME }),
    Type.String({ minLength: 1, maxLength: 8192 }),
    { minProperties: 1, maxProperties: 32 },
  ),
})

const BASE64 = /^[A-Za-z0-9+/]{43}=$/
const isEntryName = new RegExp(ENTRY_NAME)
const check = ({ entries }: Static<typeof PutSecret>): FieldError[] => {
  // The schema checks only the values of entries with valid names.
  const [invalid] = Object.keys(entries).filter((name) => !isEntryName.test(name))
  if (invalid !== undefined)
    return [
      {
        field: `entries.${invalid.slice(0, 128)}`,
        message: 'must have 1 to 128 letters, digits, . _ or - as its name',
        expected: { pattern: ENTRY_NAME },
      },
    ]
  const key = Object.hasOwn(entries, SIGNING_KEY) ? entries[SIGNING_KEY] : undefined
  return key === undefined || BASE64.test(key)
    ? []
    : [{ field: `entries.${SIGNING_KEY}`, message: 'must be 32 bytes in base64' }]
}

const P = '/projects/:project/secrets'
const shared = { tag: 'secrets', permission: 'project.admin' } as const
const to = { kind: 'project' } as const

export const secrets = {
  'secret.list': query(`GET ${P}`, {
    ...shared,
    summary: 'Names and versions of all secrets',
    answeredBy: 'gateway',
    query: Closed(cutting),
    reply: listOf(Secret),
  }),
  'secret.put': command(`PUT ${P}/:secret_name`, {
    ...shared,
    to,
    summary: 'Store the next version of a secret; identical entries create no version',
    body: PutSecret,
    check,
    reply: Secret,
    errors: ['conflict'],
  }),
  'secret.delete': command(`DELETE ${P}/:secret_name`, {
    ...shared,
    to,
    summary: 'Delete a secret with all its versions',
    status: 204,
    errors: ['not_found'],
  }),
} as const

/**
 * One stored version of a secret. `sealed` contains the entries as JSON, encrypted. Versions with
 * the same `digest` have the same entries.
 */
export interface SecretMaterial {
  readonly sealed: string
  readonly digest: string
}
/** A secret with its versions, by number. */
export interface SecretWithVersions {
  readonly secret: Secret
  readonly versions: Readonly<Record<number, SecretMaterial>>
}
/** The sealed version to which a reference (`secret_ref`) resolves. */
export interface FoundSecret {
  readonly sealed: string
  readonly version: number
}
/** Events of a project about its secrets. */
export type SecretEvent =
  | (Event & {
      readonly type: 'secret.stored'
      readonly id: string
      readonly secret: Secret
      readonly material: SecretMaterial
    })
  | (Event & { readonly type: 'secret.deleted'; readonly id: string })
