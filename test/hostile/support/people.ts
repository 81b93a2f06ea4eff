/**
 * Requests to rows that only people can use, and sign-ins of devices, which wait for a person's
 * answer.
 */
import type { RowName } from '../../../protocol/api.ts'
import type { Service } from '../../support/service.ts'
import { bodyFor, type Place } from './rows.ts'

const isForPeople = (name: RowName): boolean =>
  /^(me|cli_credential)\./.test(name) || name === 'device.answer'

/** Returns the body and headers of a form, as a device sends it. */
export const deviceForm = (
  fields: Readonly<Record<string, string>>,
): { readonly body: string; readonly headers: Readonly<Record<string, string>> } => ({
  body: new URLSearchParams(fields).toString(),
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
})
/** Starts the sign-in of a device, which then waits for an answer. Returns its two codes. */
export async function waitingDevice(
  s: Service,
): Promise<{ readonly device_code: string; readonly user_code: string }> {
  const { status, body } = await s.raw('POST', '/v1/auth/device/code', {
    key: null,
    ...deviceForm({ service_label: 'laptop' }),
  })
  if (status !== 200) throw new Error(`no device code: ${status} ${JSON.stringify(body)}`)
  return body as never
}

/**
 * Returns a credential and a body that a row accepts. The credential is the owner's, or a user's if
 * the row is for people.
 */
export async function accepted(
  s: Service,
  name: RowName,
  place: Place,
): Promise<{ readonly key: string; readonly body: object | undefined }> {
  const own =
    isForPeople(name) &&
    (await s.ok('token.create', { project: place.handle, id: place.user, name: 'own' }))
  return {
    key: own ? String(own['key']) : s.key,
    body:
      name === 'device.answer'
        ? { user_code: (await waitingDevice(s)).user_code, decision: 'allow' }
        : bodyFor(name, place),
  }
}
