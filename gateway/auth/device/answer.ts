/**
 * Prepares a person's answer to the sign-in request of a device, and contains the lookups that
 * `page.ts` also uses. A request with an unknown user code is counted against the rate limit of its
 * IP address, because user codes are short enough to guess.
 */
import type { DeviceRequest } from '../../../protocol/access/device-rows.ts'
import { timestamp } from '../../../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import type { Edge } from '../../call.ts'
import type { Prepare, Prepared } from '../../prepare.ts'
import type { Caller } from '../authenticate.ts'
import { enterProject } from '../authorize.ts'
import { countRefusal } from '../rate.ts'
import { readUserCode } from './codes.ts'

/**
 * Finds the device request with the given user code, as the person typed it. An unknown code is
 * refused with `not_found`, and counts against the rate limit of `address`.
 */
export async function findDevice(
  { world, limits }: Edge,
  code: string,
  address: string,
): Promise<{ readonly user_code: string; readonly request: DeviceRequest } | Refusal> {
  const user_code = readUserCode(code)
  const organization = world.organization()
  const request =
    user_code === undefined
      ? null
      : await world.ask(
          { project: organization, kind: 'organization', id: organization },
          'device',
          { user_code },
        )
  if (request && isRefusal(request)) return request
  return user_code !== undefined && request
    ? { user_code, request }
    : countRefusal(
        limits,
        address,
        refuse(
          'not_found',
          undefined,
          'No device is waiting with this code, or the code has expired.',
        ),
      )
}

/**
 * Returns the facts about the caller that the command `device.answer` needs: the project, the
 * permissions and the expiry of the credential.
 */
export async function answererOf(
  { directory, authentication }: Edge,
  caller: Caller,
): Promise<Prepared['input'] | Refusal> {
  const { scope, permissions } = caller
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const project =
    scope.kind === 'project' ? enterProject(caller, known, scope.project_id) : undefined
  if (project && isRefusal(project)) return project
  const expiry = authentication.expiryOf(caller)
  return {
    ...(project && { project: project.id }),
    project_handle: project?.handle ?? '',
    holds: [...permissions],
    ...(expiry !== undefined && { expires_at: timestamp(expiry) }),
  }
}

export const devicePreparations: Readonly<Record<string, Prepare>> = {
  'device.answer': async (edge, { caller, body, incoming }) => {
    const found = await findDevice(edge, String(body['user_code']), incoming.ip)
    if (isRefusal(found)) return found
    const answerer = await answererOf(edge, caller)
    return isRefusal(answerer) ? answerer : { input: { ...answerer, user_code: found.user_code } }
  },
}
