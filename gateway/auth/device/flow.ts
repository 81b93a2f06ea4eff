/**
 * Handles the two requests of the device authorization grant (RFC 8628). The first returns the
 * codes, and the second returns the token once a person has approved the request. Neither needs a
 * credential. Bodies are form-encoded, and errors have the format of RFC 6749, section 5.2. The
 * approval itself is in `answer.ts` and `page.ts`.
 *
 * Invariants:
 * D1. The token is derived from the id of the device request, and so is the id of the command that
 *     creates the token. A device that repeats its token request before the device code has been
 *     redeemed therefore receives the same token. The token is a personal token of the person who
 *     approved the request. The command contains the permissions of the credential with which the
 *     person approved it.
 * D2. Requests for codes, and token requests with an unknown device code, are counted against the
 *     rate limit of their IP address. While it is exceeded, no device code is looked up. Token
 *     requests are also limited per device code.
 */

import type { DeviceCommands, DevicePoll } from '../../../protocol/access/device-rows.ts'
import { DEVICE_GRANT, deviceFields } from '../../../protocol/access/unauthenticated-rows.ts'
import type { Origin } from '../../../protocol/entry.ts'
import { errors, isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { CommandInput, CommandReply } from '../../../protocol/queries/commands.ts'
import type { Edge } from '../../call.ts'
import { baseUrl, originOf } from '../../http/origin.ts'
import type { Incoming } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import { organizationAt, sendNew } from '../../http/send.ts'
import type { Handler } from '../../serve.ts'
import { newKey } from '../keys.ts'
import { addressLimitId, countRefusal, refuseExceeded } from '../rate.ts'
import { deviceId, newDeviceCode, newUserCode } from './codes.ts'

/** Maximum size of a form in bytes. */
export const MAX_DEVICE_FORM_BYTES = 16_384
/** Maximum number of attempts to generate a user code that no other device request uses. */
const MAX_ATTEMPTS = 3
/** Path of the page on which people enter the user code. */
export const DEVICE_PAGE = '/device'

type Failure =
  | DeniedStatus
  | 'invalid_request'
  | 'invalid_grant'
  | 'unsupported_grant_type'
  | 'temporarily_unavailable'
type DeniedStatus = Exclude<DevicePoll['status'], 'approved'>
const NO_STORE = { 'Cache-Control': 'no-store', Pragma: 'no-cache' } as const

const failure = (
  error: Failure,
  error_description: string,
  status = 400,
  headers: Readonly<Record<string, string>> = {},
): Answer => ({
  status,
  headers: { ...NO_STORE, ...headers },
  body: { error, error_description },
})
const messages: Readonly<Record<DeniedStatus, string>> = {
  authorization_pending: 'The request has not been answered yet.',
  slow_down: 'The polling is too frequent: increase the interval by five seconds.',
  access_denied: 'The request was denied.',
  expired_token: 'The code has expired; request a new code.',
}
/**
 * Converts a refusal to an OAuth error. The error is always `temporarily_unavailable`, and any 4xx
 * status becomes 429, so that devices try again.
 */
function failureOf({ refused, message, details }: Refusal): Answer {
  const { status, message: standard } = errors[refused]
  if (status < 500 && status !== 429)
    return failure('temporarily_unavailable', message ?? standard, 429)
  const seconds = details?.['retry_after_seconds']
  return failure(
    'temporarily_unavailable',
    message ?? standard,
    status,
    typeof seconds === 'number' ? { 'Retry-After': String(seconds) } : {},
  )
}

/**
 * Reads the fields of a form.
 * @returns the fields that are not empty, or the response that rejects the form.
 */
function fieldsOf({ body, broken, header }: Form): ReadonlyMap<string, string> | Answer {
  if (broken) return failure('invalid_request', 'The body is too large, or is not UTF-8.')
  const type = header?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/x-www-form-urlencoded')
    return failure('invalid_request', 'The body must be application/x-www-form-urlencoded.')
  const fields = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(body)) {
    if (fields.has(name)) return failure('invalid_request', `${name} appears more than once.`)
    if (value !== '') fields.set(name, value)
  }
  return fields
}
interface Form {
  readonly body: string
  readonly broken: Incoming['broken']
  readonly header: string | undefined
}
const formOf = (incoming: Incoming) =>
  fieldsOf({
    body: incoming.body,
    broken: incoming.broken,
    header: incoming.header('content-type'),
  })

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/
/** Maximum length of a form field in characters. */
const MAX_FIELD_LENGTH = 100
/**
 * Reads the fields in which a device describes itself.
 * @returns the part of the command's input that the form provides, or the response that rejects the
 * form.
 */
function claimOf(
  fields: ReadonlyMap<string, string>,
  brand: string,
  organization: string,
): Omit<DeviceCommands['device.request']['input'], 'id' | 'user_code' | 'address'> | Answer {
  const of = (name: (typeof deviceFields)[number]) =>
    fields.get(`${brand.toLowerCase()}_${name}`) ?? fields.get(name)
  for (const name of deviceFields) {
    const value = of(name)
    if (value !== undefined && (value.length > MAX_FIELD_LENGTH || CONTROL.test(value)))
      return failure(
        'invalid_request',
        `${name} must have at most ${MAX_FIELD_LENGTH} characters and no control characters.`,
      )
  }
  const wanted = of('requested_org_id')
  if (wanted !== undefined && wanted !== '' && wanted !== organization)
    return failure(
      'invalid_request',
      `This installation is the organization ${organization}; the device requests another one.`,
    )
  const client = [of('client'), of('client_version'), of('client_os'), of('client_arch')]
    .filter((part) => part !== undefined)
    .join(' ')
  const project_handle = of('requested_project_handle')
  return {
    label: of('label') ?? 'command line',
    ...(client !== '' && { client }),
    ...(project_handle !== undefined && { project_handle }),
  }
}

async function deviceCommand<N extends keyof DeviceCommands>(
  { world }: Edge,
  incoming: Incoming,
  name: N,
  input: CommandInput<'organization', N>,
): Promise<CommandReply<'organization', N> | Refusal> {
  const origin = originOf(
    world,
    { principal: { type: 'system', id: 'device' }, credential: { type: 'internal', id: 'device' } },
    incoming,
  )
  const outcome = await sendNew(world, organizationAt(world), name, input, origin)
  return isRefusal(outcome) ? outcome : outcome.reply
}

/** Handles a device's request for a device code and a user code. */
export const issueDeviceCode =
  (edge: Edge): Handler =>
  async (incoming) => {
    const { world, limits } = edge
    const limited = await limits?.(addressLimitId(incoming.ip))
    if (limited?.refused) return failureOf(limited.refused)
    const fields = formOf(incoming)
    if ('status' in fields) return fields
    const claim = claimOf(fields, world.settings.brand, world.organization())
    if ('status' in claim) return claim
    const device_code = newDeviceCode(world)
    for (let attempt = 1; ; attempt++) {
      const user_code = newUserCode(world)
      const asked = await deviceCommand(edge, incoming, 'device.request', {
        ...claim,
        address: incoming.ip,
        id: deviceId(world, device_code),
        user_code,
      })
      if (isRefusal(asked)) {
        if (asked.refused === 'already_exists' && attempt < MAX_ATTEMPTS) continue
        return failureOf(asked)
      }
      const page = `${baseUrl(world.settings, incoming.header('host'))}${DEVICE_PAGE}`
      return {
        status: 200,
        headers: NO_STORE,
        body: {
          device_code,
          user_code,
          verification_uri: page,
          verification_uri_complete: `${page}?user_code=${user_code}`,
          ...asked,
        },
      }
    }
  }

/** Handles a device's request for its token. */
export const issueDeviceToken =
  (edge: Edge): Handler =>
  async (incoming) => {
    const { world, limits } = edge
    const fields = formOf(incoming)
    if ('status' in fields) return fields
    const [grant, device_code] = [fields.get('grant_type'), fields.get('device_code')]
    if (grant === undefined || device_code === undefined)
      return failure('invalid_request', 'grant_type and device_code are required.')
    if (grant !== DEVICE_GRANT)
      return failure('unsupported_grant_type', `grant_type must be ${DEVICE_GRANT}.`)
    const exceeded = await refuseExceeded(limits, incoming.ip)
    if (exceeded) return failureOf(exceeded)
    const id = deviceId(world, device_code)
    const limited = await limits?.(`device:${id}`)
    if (limited?.refused) return failureOf(limited.refused)
    const polled = await deviceCommand(edge, incoming, 'device.poll', { id })
    if (isRefusal(polled)) {
      if (polled.refused !== 'not_found') return failureOf(polled)
      const refused = await countRefusal(limits, incoming.ip, polled)
      return refused.refused === 'rate_limit_exceeded' ? failureOf(refused) : unknown
    }
    if (polled.status !== 'approved') return failure(polled.status, messages[polled.status])
    const made = await makeToken(edge, incoming, id, polled)
    if (isRefusal(made)) {
      const { status, message } = errors[made.refused]
      return status >= 500 ? failureOf(made) : failure('access_denied', made.message ?? message)
    }
    const redeemed = await deviceCommand(edge, incoming, 'device.redeem', { id })
    if (isRefusal(redeemed)) return redeemed.refused === 'not_found' ? unknown : failureOf(redeemed)
    const { project, project_handle } = polled.approval
    return {
      status: 200,
      headers: NO_STORE,
      body: {
        access_token: made.token,
        token_type: 'Bearer',
        credential_id: made.id,
        project_id: project,
        project_handle,
      },
    }
  }
const unknown = failure('invalid_grant', 'The device code does not exist or was already used.')

/**
 * Creates the token on behalf of the person who approved the request. Resolves after every gateway
 * has dropped its cached copy of the project, so that every gateway accepts the token.
 */
async function makeToken(
  { world }: Edge,
  incoming: Incoming,
  id: string,
  { approval, name }: Extract<DevicePoll, { readonly status: 'approved' }>,
): Promise<{ readonly id: string; readonly token: string } | Refusal> {
  const { project, principal, credential, holds, expires_at } = approval
  const { key, hash, key_prefix } = newKey(world, project, `device\n${id}`, 'token')
  const origin: Origin = originOf(world, { principal, credential }, incoming)
  const outcome = await world.command({
    project,
    kind: 'project',
    id: project,
    command_id: `device:${id}`,
    name: 'me.create_token',
    input: {
      name,
      hash,
      key_prefix,
      derived: true,
      holds,
      ...(expires_at !== undefined && { expires_at }),
    },
    origin,
  })
  if (isRefusal(outcome)) return outcome
  await world.forget(project)
  return { id: outcome.reply.id, token: key }
}
