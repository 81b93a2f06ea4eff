/**
 * Devices that request a sign-in (RFC 8628).
 *
 * Invariants:
 * V1. A request is open for ten minutes. It is answered at most once and yields at most one token.
 * V2. At most 200 requests are stored, and at most 20 per client address. All IPv6 addresses of a
 *     /64 network count as one address. A request that yielded no token is stored for ten minutes
 *     after it expires, so that its device can read the reason, unless new requests need its place.
 *     Many addresses together therefore cannot block the sign-in of all others.
 * V3. Only a user can answer a request, and only for their own project. A request that specifies
 *     another project cannot be approved. An approval is valid while the credential with which it
 *     was given is valid.
 */
import { consoleEnd } from '../../../protocol/access/console-rows.ts'
import type {
  DeviceApproval,
  DeviceClaim,
  DeviceCommands,
  DeviceEvent,
  DevicePoll,
  DeviceRequest,
  devices,
} from '../../../protocol/access/device-rows.ts'
import { limitedAddress } from '../../../protocol/access/limited-address.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { Cause, Decision } from '../../actor.ts'
import type { ConsoleHolder } from './console-state.ts'

/** A sign-in request as the organization stores it. Times are Unix milliseconds. */
interface DeviceLogin extends DeviceClaim {
  readonly user_code: string
  readonly expires_at: number
  readonly denied?: true
  readonly approval?: DeviceApproval
  /** Time of the device's last poll; in memory only. */
  readonly polled_at?: number
}
export interface DeviceHolder {
  /** Requests by an id that is derived from the device code. */
  devices: Record<string, DeviceLogin>
}
type In<N extends keyof DeviceCommands> = DeviceCommands[N]['input']

/** Seconds for which a request is open. */
const EXPIRES_IN_S = 600
/** Minimum number of seconds between two polls by a device. */
const POLL_INTERVAL_S = 5
/** Milliseconds for which a request that yielded no token is stored after it expires. */
const KEEP_MS = 600_000
/** Maximum number of stored requests, in total and per client address. */
const DEVICE_LIMITS = { requests: 200, ofAddress: 20 } as const

const endOf = ({ expires_at }: DeviceLogin): number => expires_at + KEEP_MS
const withCode = (
  { devices }: DeviceHolder,
  user_code: string,
): readonly [id: string, login: DeviceLogin] | undefined =>
  Object.entries(devices).find(([, login]) => login.user_code === user_code)

const shown = ({
  denied,
  approval,
  label,
  client,
  address,
  project_handle,
  expires_at,
}: DeviceLogin): DeviceRequest => ({
  status: denied ? 'denied' : approval ? 'approved' : 'pending',
  label,
  ...(client !== undefined && { client }),
  address,
  ...(project_handle !== undefined && { project_handle }),
  expires_at: timestamp(expires_at),
})

/**
 * Returns the id of the request that a new one replaces: the oldest of those that can no longer
 * yield a token, otherwise the oldest open one of the address with the most open requests. Requests
 * that were approved stay.
 */
function replaceable({ devices }: DeviceHolder, now: number): string | undefined {
  const all = Object.entries(devices).sort(([, a], [, b]) => a.expires_at - b.expires_at)
  const over = all.find(([, { denied, expires_at }]) => denied || expires_at <= now)
  if (over) return over[0]
  const counts = new Map<string, number>()
  const open = all.flatMap(([id, { approval, address }]) => {
    if (approval) return []
    const of = limitedAddress(address)
    counts.set(of, (counts.get(of) ?? 0) + 1)
    return { id, of }
  })
  const most = Math.max(...counts.values())
  return open.find(({ of }) => counts.get(of) === most)?.id
}

/** Opens a sign-in request of a device. */
export function requestDevice(
  state: DeviceHolder,
  { id, user_code, label, client, project_handle, address }: In<'device.request'>,
  { at }: Cause,
): Decision<DeviceEvent, DeviceCommands['device.request']['reply']> {
  const { devices } = state
  const kept = Object.values(devices)
  const counted = limitedAddress(address)
  const ofAddress = kept.filter((login) => limitedAddress(login.address) === counted).length
  const isFull = kept.length >= DEVICE_LIMITS.requests
  const replaced = isFull ? replaceable(state, at) : undefined
  const limit =
    ofAddress >= DEVICE_LIMITS.ofAddress
      ? DEVICE_LIMITS.ofAddress
      : isFull && replaced === undefined
        ? DEVICE_LIMITS.requests
        : undefined
  if (limit !== undefined)
    return refuse('conflict', { limit }, 'Too many devices are waiting to sign in.')
  if (getOwn(devices, id) || kept.some((login) => login.user_code === user_code))
    return refuse('already_exists', { field: 'user_code' })
  return {
    events: [
      ...(replaced === undefined ? [] : [{ type: 'device.ended', id: replaced } as const]),
      {
        type: 'device.requested',
        id,
        user_code,
        label,
        ...(client !== undefined && { client }),
        ...(project_handle !== undefined && { project_handle }),
        address,
        expires_at: at + EXPIRES_IN_S * 1000,
      },
    ],
    reply: { expires_in: EXPIRES_IN_S, interval: POLL_INTERVAL_S },
  }
}

/**
 * Whether a request was approved with a console session that has ended since. The project's actor
 * makes the same check for the key of an approval when it creates the token.
 */
const isSessionOver = (
  { console_sessions }: ConsoleHolder,
  { credential: { type, id } }: DeviceApproval,
  at: number,
): boolean => {
  const session = getOwn(console_sessions, id)
  return type === 'console_session' && !(session && consoleEnd(session) > at)
}

/** Tells a device the status of its sign-in request. */
export function pollDevice(
  state: DeviceHolder & ConsoleHolder,
  { id }: In<'device.poll'>,
  { at }: Cause,
): Decision<DeviceEvent, DevicePoll> {
  const login = getOwn(state.devices, id)
  if (!login) return refuse('not_found')
  const { expires_at, denied, approval, label, user_code, polled_at } = login
  if (denied || (approval && isSessionOver(state, approval, at)))
    return { events: [], reply: { status: 'access_denied' } }
  if (expires_at <= at) return { events: [], reply: { status: 'expired_token' } }
  if (approval)
    return { events: [], reply: { status: 'approved', approval, name: `${label} (${user_code})` } }
  const early = polled_at !== undefined && at - polled_at < POLL_INTERVAL_S * 1000
  return {
    events: [],
    soft: [{ type: 'device.polled', id, at }],
    reply: { status: early ? 'slow_down' : 'authorization_pending' },
  }
}

/**
 * Approves or denies a request. A repeat of the same answer changes nothing. A different answer is
 * refused.
 */
export function answerDevice(
  state: DeviceHolder,
  {
    user_code,
    decision,
    project,
    project_handle,
    holds,
    expires_at,
  }: Input<(typeof devices)['device.answer']> & DeviceAnswerer,
  { at, principal, credential }: Cause,
): Decision<DeviceEvent, DeviceRequest> {
  if (principal.type !== 'user' || project === undefined || !credential)
    return refuse(
      'permission_denied',
      undefined,
      'Only people can let a device sign in as themselves.',
    )
  const [id, login] = withCode(state, user_code) ?? []
  if (!id || !login || login.expires_at <= at) return refuse('not_found')
  const { status } = shown(login)
  const wanted = decision === 'allow' ? 'approved' : 'denied'
  const again = status === wanted && (login.denied || login.approval?.principal.id === principal.id)
  if (again) return { events: [], reply: shown(login) }
  if (status !== 'pending')
    return refuse('conflict', { status }, 'This request was already answered.')
  if (decision === 'deny')
    return {
      events: [{ type: 'device.denied', id }],
      reply: shown({ ...login, denied: true }),
    }
  if (login.project_handle !== undefined && login.project_handle !== project_handle)
    return refuse(
      'conflict',
      { project_handle: login.project_handle },
      `The device requests the project ${login.project_handle}, but you belong to ${project_handle}.`,
    )
  const approval: DeviceApproval = {
    project,
    project_handle,
    principal,
    credential,
    holds,
    ...(expires_at !== undefined && { expires_at }),
  }
  return {
    events: [{ type: 'device.approved', id, approval }],
    reply: shown({ ...login, approval }),
  }
}
/**
 * Data that the gateway adds to an answer: the caller's project and permissions, and the time at
 * which the caller's credential expires. If there is no project, the caller uses an organization
 * key.
 */
export interface DeviceAnswerer {
  readonly project?: string
  readonly project_handle: string
  readonly holds: readonly string[]
  readonly expires_at?: string
}

/** Ends a request whose token was created. */
export const redeemDevice = (
  { devices }: DeviceHolder,
  { id }: In<'device.redeem'>,
): Decision<DeviceEvent, undefined> =>
  getOwn(devices, id)?.approval
    ? { events: [{ type: 'device.ended', id }], reply: undefined }
    : refuse('not_found')

/**
 * Returns the time at which the next request is deleted, in Unix milliseconds. Returns undefined if
 * no requests are stored.
 */
export const nextDeviceEnd = ({ devices }: DeviceHolder): number | undefined => {
  const ends = Object.values(devices).map(endOf)
  return ends.length === 0 ? undefined : Math.min(...ends)
}
/** Returns the events that delete the requests whose retention has ended. */
export const endDevices = ({ devices }: DeviceHolder, { at }: Cause): DeviceEvent[] =>
  Object.entries(devices).flatMap(([id, login]): DeviceEvent[] =>
    endOf(login) <= at ? [{ type: 'device.ended', id }] : [],
  )

/**
 * Returns the open request with this user code in the form that users see. Returns null if there is
 * no such request.
 */
export function deviceOf(
  state: DeviceHolder,
  { user_code }: { readonly user_code: string },
  at: number,
): DeviceRequest | null {
  const login = withCode(state, user_code)?.[1]
  return login && login.expires_at > at ? shown(login) : null
}

type On<T> = Extract<DeviceEvent, { readonly type: T }>
const changed = <S extends DeviceHolder>(state: S, id: string, change: Partial<DeviceLogin>): S => {
  const login = getOwn(state.devices, id)
  if (login) state.devices[id] = { ...login, ...change }
  return state
}
export const evolveDevices = {
  'device.requested': <S extends DeviceHolder>(
    state: S,
    { type: _, id, ...login }: On<'device.requested'>,
  ): S => {
    state.devices[id] = login
    return state
  },
  'device.polled': <S extends DeviceHolder>(state: S, { id, at }: On<'device.polled'>): S =>
    changed(state, id, { polled_at: at }),
  'device.approved': <S extends DeviceHolder>(
    state: S,
    { id, approval }: On<'device.approved'>,
  ): S => changed(state, id, { approval }),
  'device.denied': <S extends DeviceHolder>(state: S, { id }: On<'device.denied'>): S =>
    changed(state, id, { denied: true }),
  'device.ended': <S extends DeviceHolder>(state: S, { id }: On<'device.ended'>): S => {
    delete state.devices[id]
    return state
  },
}
