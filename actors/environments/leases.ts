/**
 * Leases: exclusive use of an environment for a limited time. The actor identifies a lease by its
 * id. Clients receive a token that only gateways can derive from the id.
 */

import { timestamp } from '../../protocol/common.ts'
import type { LeaseGranted } from '../../protocol/environments/commands.ts'
import type { EnvironmentEvent, ExistingEnvironment } from '../../protocol/environments/events.ts'
import type { AcquireEnvironment, Environment, Holder } from '../../protocol/environments/schema.ts'
import { refuse } from '../../protocol/errors.ts'
import type { Cause, Decision } from '../actor.ts'
import { advance } from './advance.ts'
import { type EnvironmentSettings, emit, finish, newDraft } from './draft.ts'
import { type EnvironmentState, isSameHolder, shownEnvironment } from './state.ts'
import { endLease } from './transitions.ts'

/** Default duration of a lease in seconds. */
const DEFAULT_TTL_S = 300
const leasable: ReadonlySet<string> = new Set(['provisioning', 'ready', 'running', 'retained'])

/** The fields that the gateway adds to a command about a lease. */
export interface AddedLeaseInput {
  /** Id of the lease to renew or release, which the gateway found by its token. */
  readonly lease_id?: string
}

const missing = () => refuse('not_found', { resource: 'environment' })
const taken = (holder: Holder, expires_at?: string) =>
  refuse('environment_leased', { holder, ...(expires_at !== undefined && { expires_at }) })
/**
 * Returns a holder other than the given one that has an admitted job in the environment, or
 * undefined if there is no such holder.
 */
const occupant = ({ jobs }: ExistingEnvironment, holder: Holder): Holder | undefined =>
  Object.values(jobs).find((job) => job.admitted && !isSameHolder(job.holder, holder))?.holder

/** Grants or renews the lease. */
export function acquire(
  state: EnvironmentState,
  input: AcquireEnvironment & AddedLeaseInput,
  cause: Cause,
  settings: EnvironmentSettings,
): Decision<EnvironmentEvent, LeaseGranted> {
  if (!state) return missing()
  const { status } = state.record
  if (!leasable.has(status)) return refuse('environment_not_ready', { status })
  const draft = newDraft(state, cause, settings)
  const current = state.record.lease
  const isOver = state.lease_until === undefined || cause.at >= state.lease_until
  const renewed = input.lease_id !== undefined
  if (renewed && (isOver || current?.id !== input.lease_id)) return refuse('lease_lost')
  const holder: Holder = (renewed ? current?.holder : input.holder) ?? {
    kind: 'principal',
    id: cause.principal.id,
  }
  if (!renewed) {
    if (!isOver && current) return taken(current.holder, current.expires_at)
    const other = occupant(state, holder)
    if (other) return taken(other)
    endLease(draft, 'expired')
  }
  const until = cause.at + (input.ttl_seconds ?? DEFAULT_TTL_S) * 1000
  const lease = {
    id: renewed && current ? current.id : cause.mint('environment_lease'),
    holder,
    acquired_at: renewed && current ? current.acquired_at : timestamp(cause.at),
    expires_at: timestamp(until),
  }
  emit(draft, {
    type: 'environment.leased',
    id: state.record.id,
    record: { lease, updated_at: timestamp(cause.at) },
    fence: renewed ? draft.state.fence : draft.state.fence + 1,
    until,
  })
  advance(draft)
  return finish(draft, { environment: shownEnvironment(draft.state), lease })
}

/** Ends a lease. If the lease has already ended, the request is accepted but changes nothing. */
export function release(
  state: EnvironmentState,
  { lease_id }: AddedLeaseInput,
  cause: Cause,
  settings: EnvironmentSettings,
): Decision<EnvironmentEvent, Environment> {
  if (!state) return missing()
  const draft = newDraft(state, cause, settings)
  if (lease_id !== undefined && state.record.lease?.id === lease_id) endLease(draft, 'released')
  advance(draft)
  return finish(draft, shownEnvironment(draft.state))
}
