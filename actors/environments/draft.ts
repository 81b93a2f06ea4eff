/**
 * A decision under construction. Each rule needs the state that results from the previous rules, so
 * a draft applies every event when it is emitted. `apply` never changes the state that it receives,
 * so the actor's own state remains unchanged.
 */
import { timestamp } from '../../protocol/common.ts'
import type { EnvironmentEvent, ExistingEnvironment } from '../../protocol/environments/events.ts'
import { type Environment, environmentLimits } from '../../protocol/environments/schema.ts'
import type { Patch } from '../../protocol/patch.ts'
import type { Cause, Decided, Tell } from '../actor.ts'
import { apply } from './state.ts'

/** Settings of environments. Times are in milliseconds. */
export interface EnvironmentSettings {
  /** Provider of environments whose binding does not specify one. */
  readonly default_provider: string
  /** Providers by alias. */
  readonly aliases: Readonly<Record<string, string>>
  /**
   * Time within which the worker of an environment must connect. If it does not, waiting jobs fail.
   */
  readonly wake_ms: number
  /** Time within which a host must claim the provisioning of an environment. */
  readonly provision_ms: number
  /**
   * Time for which the policy retains the environment of a run that has ended; 0 means no limit.
   */
  readonly retain_ms: number
}
export const defaultEnvironmentSettings: EnvironmentSettings = {
  default_provider: 'local',
  aliases: { sprites: 'local', cloudflare_containers: 'local' },
  wake_ms: 30_000,
  provision_ms: 300_000,
  retain_ms: 7 * 86_400_000,
}

export interface Draft {
  readonly cause: Cause
  readonly settings: EnvironmentSettings
  /** The state after the events so far. */
  state: ExistingEnvironment
  readonly events: EnvironmentEvent[]
  readonly tells: Tell[]
  readonly soft: EnvironmentEvent[]
}

/** Begins a decision about an existing environment. */
export const newDraft = (
  state: ExistingEnvironment,
  cause: Cause,
  settings: EnvironmentSettings,
): Draft => ({ cause, settings, state, events: [], tells: [], soft: [] })

/** Adds an event to the decision and applies it. */
export function emit(draft: Draft, event: EnvironmentEvent): void {
  draft.events.push(event)
  draft.state = apply(draft.state, event, draft.cause.at) as ExistingEnvironment
}
/** Adds a soft event to the decision and applies it. */
export function emitSoft(draft: Draft, event: EnvironmentEvent): void {
  draft.soft.push(event)
  draft.state = apply(draft.state, event, draft.cause.at) as ExistingEnvironment
}
/** Changes fields of the record. The audit log shows changes to the status. */
export function change(draft: Draft, record: Patch<Environment>): void {
  const { id, at } = { id: draft.state.record.id, at: draft.cause.at }
  emit(draft, {
    type: 'environment.status_changed',
    id,
    record: { ...record, updated_at: timestamp(at) },
  })
}

/** Returns the finished decision. */
export function finish<R>(draft: Draft, reply: R): Decided<EnvironmentEvent, R> {
  return {
    events: draft.events,
    reply,
    ...(draft.tells.length > 0 && { tells: draft.tells }),
    ...(draft.soft.length > 0 && { soft: draft.soft }),
  }
}

/** Milliseconds without a heartbeat after which a host or its place counts as lost. */
export const STALE_MS = environmentLimits.stale
