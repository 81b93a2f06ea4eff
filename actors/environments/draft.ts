/**
 * A decision under construction. Each rule needs the state after the rules before it, so a draft
 * applies every event as it is emitted. `apply` never changes the state that it receives, so the
 * state of the actor stays as it is.
 */
import { timestamp } from '../../protocol/common.ts'
import type { EnvironmentEvent, KeptEnvironment } from '../../protocol/environments/events.ts'
import { type Environment, environmentLimits } from '../../protocol/environments/schema.ts'
import type { Patch } from '../../protocol/patch.ts'
import type { Cause, Decided, Tell } from '../actor.ts'
import { apply } from './state.ts'

/** Settings of environments. Times are in milliseconds. */
export interface EnvironmentSettings {
  /** Provider of the environments that jobs create without naming one. */
  readonly default_provider: string
  /** Further names of providers, each with the provider for which it stands. */
  readonly aliases: Readonly<Record<string, string>>
  /** Time for the worker of an environment to connect, after which the jobs that wait fail. */
  readonly wake_ms: number
  /** Time for a host to begin to prepare an environment. */
  readonly provision_ms: number
  /** Time for which the environment of a run that ended is retained by its policy; 0: for ever. */
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
  state: KeptEnvironment
  readonly events: EnvironmentEvent[]
  readonly tells: Tell[]
  readonly soft: EnvironmentEvent[]
}

/** Begins a decision on an environment that exists. */
export const draft = (
  state: KeptEnvironment,
  cause: Cause,
  settings: EnvironmentSettings,
): Draft => ({ cause, settings, state, events: [], tells: [], soft: [] })

/** Adds an event to the decision and applies it. */
export function emit(on: Draft, event: EnvironmentEvent): void {
  on.events.push(event)
  on.state = apply(on.state, event, on.cause.at) as KeptEnvironment
}
/** Adds a change that may be lost. */
export function emitSoft(on: Draft, event: EnvironmentEvent): void {
  on.soft.push(event)
  on.state = apply(on.state, event, on.cause.at) as KeptEnvironment
}
/** Changes the record by an event of the audit log. */
export function change(on: Draft, record: Patch<Environment>): void {
  const { id, at } = { id: on.state.record.id, at: on.cause.at }
  emit(on, {
    type: 'environment.status_changed',
    id,
    record: { ...record, updated_at: timestamp(at) },
  })
}

/** The finished decision. */
export function finish<R>(on: Draft, reply: R): Decided<EnvironmentEvent, R> {
  return {
    events: on.events,
    reply,
    ...(on.tells.length > 0 && { tells: on.tells }),
    ...(on.soft.length > 0 && { soft: on.soft }),
  }
}

/** Milliseconds without a sign of life after which a host or its place counts as lost. */
export const STALE_MS = environmentLimits.stale
