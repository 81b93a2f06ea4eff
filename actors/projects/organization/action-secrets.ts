/**
 * The lifecycle of the secrets that sign calls to the organization's actions.
 *
 *     (rotate) → pending → (activate) → active → (activate the next one) → retiring → retired
 *     pending, retiring, retired → revoked at any time; active → revoked only while the action is
 *     disabled
 *
 * Invariants: at most one version is active, and at most one version is pending. Only the active
 * version signs calls.
 */
import type {
  OrganizationAction,
  OrganizationActionEvent,
  organizationActions,
  SecretVersion,
} from '../../../protocol/actions/organization-rows.ts'
import type { SealedSecret } from '../../../protocol/actions/rows.ts'
import { parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { withMaskedUrl } from '../../../protocol/masked-url.ts'
import { patch } from '../../../protocol/patch.ts'
import type { Cause, Decision } from '../../actor.ts'
import type { OrganizationState } from './state.ts'

type Rows = typeof organizationActions
type Decided = Decision<OrganizationActionEvent, OrganizationAction>
/** Number of versions above which retired and revoked versions are dropped, oldest first. */
const MAX_VERSIONS = 50
/** Default number of seconds for which receivers still accept the previous version. */
const OVERLAP_S = 86_400

type SecretChanged = Extract<
  OrganizationActionEvent,
  { type: 'organization_action.secret_changed' }
>
/** A change of one version: what happened to which version, and the resulting versions. */
interface Change extends Pick<SecretChanged, 'what' | 'version' | 'secret'> {
  readonly versions: readonly SecretVersion[]
  /** The version that signs calls after the change. */
  readonly active: number | undefined
}
function changed(
  action: OrganizationAction,
  { what, version, versions, active, secret }: Change,
  at: number,
): Decided {
  const gone = (one: SecretVersion) => one.status === 'retired' || one.status === 'revoked'
  const forgotten = new Set(
    versions.filter(gone).slice(0, Math.max(0, versions.length - MAX_VERSIONS)),
  )
  const change = {
    secret_versions: versions.filter((one) => !forgotten.has(one)),
    active_signing_version: active ?? null,
    updated_at: timestamp(at),
  }
  return {
    events: [
      {
        type: 'organization_action.secret_changed',
        id: action.id,
        what,
        version,
        action: change,
        ...(secret && { secret }),
      },
    ],
    reply: withMaskedUrl(patch(action, change), 'endpoint_url'),
  }
}
const revoked = (one: SecretVersion, at: number): SecretVersion => ({
  ...one,
  status: 'revoked',
  revoked_at: timestamp(at),
})

/** Creates the next version as pending. A version that was already pending is revoked. */
export function rotateSecret(
  state: OrganizationState,
  { action_id, sealed }: { readonly action_id: string } & SealedSecret,
  { at }: Cause,
): Decided {
  const kept = getOwn(state.actions, action_id)
  if (!kept) return refuse('not_found')
  const { secret_versions, active_signing_version } = kept.action
  const version = Math.max(...secret_versions.map((one) => one.version)) + 1
  const before = secret_versions.map((one) => (one.status === 'pending' ? revoked(one, at) : one))
  return changed(
    kept.action,
    {
      what: 'rotated',
      version,
      versions: [...before, { version, status: 'pending', created_at: timestamp(at) }],
      active: active_signing_version,
      secret: { sealed },
    },
    at,
  )
}

function versionOf(
  { actions }: OrganizationState,
  { action_id, version }: { readonly action_id: string; readonly version: string },
): { action: OrganizationAction; one: SecretVersion } | Refusal {
  const kept = getOwn(actions, action_id)
  const one = kept?.action.secret_versions.find(
    (candidate) => String(candidate.version) === version,
  )
  return kept && one ? { action: kept.action, one } : refuse('not_found')
}

/**
 * Activates the pending version, which signs calls from then on. Receivers accept the previous
 * version until the overlap ends.
 */
export function activateSecret(
  state: OrganizationState,
  input: Input<Rows['organization_action.activate_secret']>,
  { at }: Cause,
): Decided {
  const found = versionOf(state, input)
  if ('refused' in found) return found
  const { action, one } = found
  if (one.status !== 'pending')
    return refuse(
      'conflict',
      { version: one.version, status: one.status },
      'Only a pending version can be activated.',
    )
  const overlap = (input.overlap_seconds ?? OVERLAP_S) * 1000
  const [now, until] = [timestamp(at), timestamp(at + overlap)]
  const versions = action.secret_versions.map((other): SecretVersion => {
    if (other.version === one.version) return { ...other, status: 'active', activated_at: now }
    if (other.status !== 'active') return other
    return overlap === 0
      ? { ...other, status: 'retired', accept_until: now, retired_at: now }
      : { ...other, status: 'retiring', accept_until: until }
  })
  const { version } = one
  return changed(action, { what: 'activated', version, versions, active: version }, at)
}

/**
 * Revokes a version immediately. Refuses to revoke the active version of an enabled action. A
 * repeat changes nothing.
 */
export function revokeSecret(
  state: OrganizationState,
  input: Input<Rows['organization_action.revoke_secret']>,
  { at }: Cause,
): Decided {
  const found = versionOf(state, input)
  if ('refused' in found) return found
  const { action, one } = found
  if (one.status === 'revoked') return { events: [], reply: withMaskedUrl(action, 'endpoint_url') }
  if (one.status === 'active' && action.enabled)
    return refuse(
      'conflict',
      { version: one.version, status: one.status },
      'Calls are signed with this version; activate another one, or disable the action first.',
    )
  const versions = action.secret_versions.map((other) =>
    other.version === one.version ? revoked(other, at) : other,
  )
  const active = one.status === 'active' ? undefined : action.active_signing_version
  return changed(action, { what: 'revoked', version: one.version, versions, active }, at)
}

const endOf = ({ status, accept_until }: SecretVersion): number | undefined =>
  status === 'retiring' && accept_until !== undefined ? parseTimestamp(accept_until) : undefined
/** Returns the events that retire the versions whose `accept_until` has passed. */
export const retire = ({ actions }: OrganizationState, { at }: Cause): OrganizationActionEvent[] =>
  Object.values(actions).flatMap(({ action }): OrganizationActionEvent[] => {
    const due = (one: SecretVersion) => (endOf(one) ?? Infinity) <= at
    if (!action.secret_versions.some(due)) return []
    const secret_versions = action.secret_versions.map(
      (one): SecretVersion =>
        due(one)
          ? { ...one, status: 'retired', retired_at: one.accept_until ?? timestamp(at) }
          : one,
    )
    return [
      { type: 'organization_action.secret_retired', id: action.id, action: { secret_versions } },
    ]
  })
/**
 * Returns the time at which the next version must be retired, in Unix milliseconds, or undefined if
 * no version is retiring.
 */
export function nextRetirement({ actions }: OrganizationState): number | undefined {
  let next: number | undefined
  for (const { action } of Object.values(actions)) {
    for (const one of action.secret_versions) {
      const end = endOf(one)
      if (end !== undefined && (next === undefined || end < next)) next = end
    }
  }
  return next
}
