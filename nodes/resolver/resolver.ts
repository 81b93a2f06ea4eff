/**
 * Resolves definitions of agents: from the store while they are fresh, otherwise by a call to the
 * endpoint. The rules are in `protocol/resolver/callout.ts`.
 *
 * Invariants:
 * D1. At most one call for an agent is in progress: a process makes one at a time, and processes
 *     exclude each other by a claim in the store. Other callers wait for its outcome.
 * D2. A claim outlasts the timeout of its call by `MARGIN_MS`, then expires. A dead process
 *     therefore delays the next call, but does not prevent it, even if its clock was wrong.
 * D3. Only the process with the claim changes the value, by compare-and-set on the revision that it
 *     read.
 * D4. A waiting caller uses the outcome of a call only if the call was made with the caller's
 *     configuration.
 */
import type { DefinitionResolver, Log, ResolverQuestion } from '../../gateway/ports.ts'
import { sleep } from '../../gateway/timing.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import {
  type CalloutOutcome,
  isFresh,
  type KnownDefinition,
  reasonOf,
  resolutionOf,
  type TriggerKind,
} from '../../protocol/resolver/callout.ts'
import { resolverLimits } from '../../protocol/resolver/schema.ts'
import { isSameBundle } from '../../protocol/runs/turns.ts'
import type { Clock } from '../host/ports.ts'
import type { CallResult } from './call.ts'
import { createMemory } from './memory.ts'
import type { AgentKey, DefinitionStore, Head, Value, Versioned } from './store.ts'

/** Measurements of the resolver. Ages and durations are in seconds. */
export interface ResolverMeasure {
  /** Records a call that has ended. @param at Unix milliseconds of the end. */
  resolverCalled(outcome: string, ok: boolean, seconds: number, at: number): void
  /**
   * Records that a stored definition was used, because it is still fresh or because the resolver is
   * unavailable (`stale`).
   */
  definitionServed(use: 'fresh' | 'stale', age: number): void
  /** Records that a definition could not be resolved. */
  definitionFailed(type: string): void
}
interface Parts {
  readonly store: DefinitionStore
  /** Makes a call, and never throws. */
  readonly call: (
    question: ResolverQuestion,
    trigger: TriggerKind,
    known_digest: string | undefined,
    id: string,
  ) => Promise<CallResult>
  readonly clock: Clock
  /** Returns a new call id. */
  readonly mint: () => string
  readonly log: Log
  readonly measure: ResolverMeasure
}

/**
 * Milliseconds by which a claim outlasts the timeout of its call, so that the outcome can be
 * stored.
 */
const MARGIN_MS = 3000
/** Maximum time until a claim expires, in milliseconds. A later time is that of a wrong clock. */
const MAX_CLAIM_MS = resolverLimits.timeout_ms + MARGIN_MS
/** Initial and maximum pause between two checks of another process's claim, in milliseconds. */
const LOOK = { first: 20, last: 250 } as const
/** Maximum number of attempts to resolve a definition when the store fails before the call. */
const MAX_ATTEMPTS = 3
/** Maximum number of characters of the definitions in memory, as JSON. */
const MAX_CACHED_CHARACTERS = 8 * 2 ** 20

type Answer = KnownDefinition | Refusal
type Stored = Versioned<Value> | undefined
const definitionIn = (stored: Stored): KnownDefinition | undefined => stored?.entry ?? undefined
const keyOf = ({ project, agent_id }: ResolverQuestion): AgentKey => ({
  project: project.id,
  agent_id,
})
const nameOf = ({ project, agent_id }: AgentKey): string => `${project}/${agent_id}`
/** Returns the recorded outcome of another process's call; undefined if it stored a definition. */
const outcomeOf = ({
  outcome,
  reason = '',
}: NonNullable<Head['ended']>): CalloutOutcome | undefined =>
  outcome === 'definition'
    ? undefined
    : outcome === 'unknown_agent'
      ? { kind: 'unknown_agent' }
      : { kind: 'unreachable', reason }

export function createDefinitionResolver(parts: Parts): DefinitionResolver {
  const { store, clock, log, measure } = parts
  const flights = new Map<string, Promise<Answer>>()
  const memory = createMemory(MAX_CACHED_CHARACTERS)

  /** Returns the stored definition, with the time of its last confirmation. */
  async function storedIn(key: AgentKey, head: Versioned<Head> | undefined): Promise<Stored> {
    const confirmed = head?.entry.confirmed
    const kept = confirmed && memory.get(nameOf(key), confirmed.revision)
    const found = kept ?? (await store.value(key))
    if (!found?.entry) return found
    if (!kept) memory.set(nameOf(key), found)
    return confirmed?.revision === found.revision && confirmed.at > found.entry.at
      ? { ...found, entry: { ...found.entry, at: confirmed.at } }
      : found
  }
  const age = ({ at }: KnownDefinition): number => Math.max(0, clock.now() - at) / 1000

  function settle(question: ResolverQuestion, known: Stored, outcome: CalloutOutcome): Answer {
    const { settings } = question.configuration
    const resolution = resolutionOf(settings, definitionIn(known), outcome, clock.now())
    if ('use' in resolution) {
      if (resolution.stale) measure.definitionServed('stale', age(resolution.use))
      return resolution.use
    }
    measure.definitionFailed(resolution.fail)
    return refuse(resolution.fail, { agent_id: question.agent_id, reason: resolution.reason })
  }

  /** Makes the call for which this process has the claim, and stores its outcome. */
  async function lead(
    question: ResolverQuestion,
    trigger: TriggerKind,
    known: Stored,
    claimed: Versioned<Head>,
    id: string,
  ): Promise<Answer> {
    const key = keyOf(question)
    const began = clock.elapsed()
    const digest = definitionIn(known)?.digest
    const { outcome, label, detail } = await parts.call(question, trigger, digest, id)
    const answer = settle(question, known, outcome)
    const answered =
      outcome.kind === 'unknown_agent' ||
      (!isRefusal(answer) && (outcome.kind === 'bundle' || outcome.kind === 'unchanged'))
    const seconds = (clock.elapsed() - began) / 1000
    // An `unchanged` response is invalid if no definition is stored.
    const shown = answered || label !== 'unchanged' ? label : 'invalid'
    measure.resolverCalled(shown, answered, seconds, clock.now())
    if (!answered)
      log.warn(
        {
          event: 'definition_resolver_failed',
          outcome: shown,
          reason: isRefusal(answer) ? answer.details?.['reason'] : reasonOf(outcome),
          ...(detail !== undefined && { detail }),
          call: id,
          project: key.project,
          agent_id: key.agent_id,
          used: isRefusal(answer) ? 'nothing' : 'last_known_good',
        },
        'definition resolver gave no valid answer',
      )
    try {
      await record(key, known, claimed, id, outcome, answer)
    } catch (err) {
      log.warn(
        { event: 'definition_not_stored', err, project: key.project, agent_id: key.agent_id },
        'definition could not be stored',
      )
      // The claim is removed, so that other processes need not wait until it expires.
      const { claim: _, ...before } = claimed.entry
      await store.putHead(key, before, claimed.revision).catch(() => {})
    }
    return answer
  }
  async function record(
    key: AgentKey,
    known: Stored,
    { entry: { claim, confirmed: before }, revision }: Versioned<Head>,
    id: string,
    outcome: CalloutOutcome,
    answer: Answer,
  ): Promise<void> {
    const configuration = claim?.configuration ?? ''
    const ended = (end: NonNullable<Head['ended']>['outcome'], more: Partial<Head> = {}) =>
      store.putHead(
        key,
        {
          ended: {
            id,
            configuration,
            outcome: end,
            ...(end === 'unavailable' && { reason: reasonOf(outcome) }),
          },
          ...more,
        },
        revision,
      )
    if (outcome.kind === 'unknown_agent') {
      if (known?.entry) await store.putValue(key, null, known.revision)
      await ended('unknown_agent')
      return
    }
    const sent = outcome.kind === 'bundle' || outcome.kind === 'unchanged'
    if (!sent || isRefusal(answer)) {
      await ended('unavailable', before && { confirmed: before })
      return
    }
    const stored =
      known?.entry && isSameBundle(known.entry, answer)
        ? known.revision
        : await store.putValue(key, answer, known?.revision ?? 0)
    // If the value was not stored, another process has taken over the claim and stored its own
    // result.
    if (stored === undefined) return
    memory.set(nameOf(key), { entry: answer, revision: stored })
    await ended('definition', { confirmed: { revision: stored, at: answer.at } })
  }

  /**
   * Waits until another process's claim ends or expires, for at most `limit` milliseconds, because
   * the clock of that process may be ahead. Returns the head that was read last.
   */
  async function after(
    key: AgentKey,
    { entry: { claim }, revision }: Versioned<Head>,
    limit: number,
  ): Promise<Versioned<Head> | undefined> {
    const patience = Math.min(limit, Math.max(0, (claim?.until ?? 0) - clock.now()))
    const until = clock.elapsed() + patience
    for (let pause: number = LOOK.first; ; pause = Math.min(pause * 2, LOOK.last)) {
      const head = await store.head(key)
      if (!head || head.revision !== revision || clock.elapsed() >= until) return head
      await sleep(clock, pause)
    }
  }

  /** @param id identifies the call, if this process makes one. */
  async function run(
    question: ResolverQuestion,
    trigger: TriggerKind,
    id: string,
  ): Promise<Answer> {
    const key = keyOf(question)
    const { settings, updated_at } = question.configuration
    const until = clock.elapsed() + 2 * (settings.timeout_ms + MARGIN_MS)
    let head = await store.head(key)
    /** Revision of the head with the last claim that this process has waited for. */
    let expired: number | undefined
    while (clock.elapsed() < until) {
      const known = await storedIn(key, head)
      const definition = definitionIn(known)
      if (definition && isFresh(settings, definition, clock.now())) {
        measure.definitionServed('fresh', age(definition))
        return definition
      }
      const claim = head?.entry.claim
      // An earlier attempt made this claim, but the response of the store was lost.
      if (head && claim?.id === id) return lead(question, trigger, known, head, id)
      const remaining = claim ? claim.until - clock.now() : 0
      const counts = remaining > 0 && remaining <= MAX_CLAIM_MS && head?.revision !== expired
      if (head && claim && counts) {
        expired = head.revision
        const waited = await after(key, head, settings.timeout_ms + MARGIN_MS)
        const ended = waited?.entry.ended
        if (ended?.id === claim.id && ended.configuration === updated_at) {
          const value = await storedIn(key, waited)
          const outcome = outcomeOf(ended)
          if (outcome) return settle(question, value, outcome)
          if (value?.entry) return value.entry
        }
        head = waited
        continue
      }
      const next: Head = {
        ...head?.entry,
        claim: {
          id,
          configuration: updated_at,
          until: clock.now() + settings.timeout_ms + MARGIN_MS,
        },
      }
      const revision = await store.putHead(key, next, head?.revision ?? 0)
      if (revision !== undefined)
        return lead(question, trigger, known, { entry: next, revision }, id)
      head = await store.head(key)
    }
    const reason = 'other calls for the agent did not end in time'
    return settle(question, await storedIn(key, head), { kind: 'unreachable', reason })
  }

  /** Resolves a definition, and retries when the store fails before the call. */
  async function persistently(question: ResolverQuestion, trigger: TriggerKind): Promise<Answer> {
    const id = parts.mint()
    for (let failures = 1; ; failures++)
      try {
        return await run(question, trigger, id)
      } catch (error) {
        if (failures === MAX_ATTEMPTS) throw error
        await sleep(clock, LOOK.last)
      }
  }
  const guarded = async <T>(answer: Promise<T>): Promise<T | Refusal> => {
    try {
      return await answer
    } catch (err) {
      log.warn({ event: 'definition_store_failed', err }, 'store of definitions does not answer')
      return refuse('service_unavailable')
    }
  }
  return {
    resolve(question, trigger) {
      const { project, agent_id, configuration } = question
      const name = `${project.id}/${agent_id}/${configuration.updated_at}`
      const flying = flights.get(name)
      if (flying) return flying
      const flight = guarded(persistently(question, trigger)).finally(() => flights.delete(name))
      flights.set(name, flight)
      return flight
    },
    stored: (question) =>
      guarded(
        (async () => {
          const key = keyOf(question)
          return definitionIn(await storedIn(key, await store.head(key)))
        })(),
      ),
    forget: (project) => store.forget(project),
  }
}
