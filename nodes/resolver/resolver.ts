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
import type { Clock } from '../host/ports.ts'
import type { CallResult } from './call.ts'
import type { AgentKey, DefinitionStore, Head, Versioned } from './store.ts'
import { definitionIn, type Stored, StoredDefinitions } from './stored-definitions.ts'

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
const PAUSE_MS = { first: 20, last: 250 } as const
/** Maximum number of attempts to resolve a definition when the store fails before the call. */
const MAX_ATTEMPTS = 3

type Answer = KnownDefinition | Refusal
/** A claim of this process on the next call for an agent, and the stored definition before it. */
interface OwnClaim {
  readonly id: string
  readonly claimed: Versioned<Head>
  readonly known: Stored
}
const keyOf = ({ project, agent_id }: ResolverQuestion): AgentKey => ({
  project: project.id,
  agent_id,
})
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
  const { store, log } = parts
  const definitions = new StoredDefinitions(store)
  const resolution = new Resolution(parts, definitions)
  const flights = new Map<string, Promise<Answer>>()
  const guarded = async <T>(answer: Promise<T>): Promise<T | Refusal> => {
    try {
      return await answer
    } catch (err) {
      log.warn({ event: 'definition_store_failed', err }, 'store of definitions does not answer')
      return refuse('service_unavailable')
    }
  }
  const storedOf = async (question: ResolverQuestion) => {
    const key = keyOf(question)
    return definitionIn(await definitions.read(key, await store.head(key)))
  }
  return {
    resolve(question, trigger) {
      const { project, agent_id, configuration } = question
      const name = `${project.id}/${agent_id}/${configuration.updated_at}`
      const flying = flights.get(name)
      if (flying) return flying
      const flight = guarded(resolution.resolve(question, trigger)).finally(() =>
        flights.delete(name),
      )
      flights.set(name, flight)
      return flight
    },
    stored: (question) => guarded(storedOf(question)),
    forget: (project) => store.forget(project),
  }
}

/** Resolves definitions. The methods throw when the store does not answer. */
class Resolution {
  readonly #parts: Parts
  readonly #definitions: StoredDefinitions

  constructor(parts: Parts, definitions: StoredDefinitions) {
    this.#parts = parts
    this.#definitions = definitions
  }
  /** Resolves a definition, and retries when the store fails before the call. */
  async resolve(question: ResolverQuestion, trigger: TriggerKind): Promise<Answer> {
    const id = this.#parts.mint()
    for (let failures = 1; ; failures++)
      try {
        return await this.#attempt(question, trigger, id)
      } catch (error) {
        if (failures === MAX_ATTEMPTS) throw error
        await sleep(this.#parts.clock, PAUSE_MS.last)
      }
  }

  /** @param id identifies the call, if this process makes one. */
  async #attempt(question: ResolverQuestion, trigger: TriggerKind, id: string): Promise<Answer> {
    const { store, clock } = this.#parts
    const key = keyOf(question)
    const claimMs = question.configuration.settings.timeout_ms + MARGIN_MS
    const until = clock.elapsed() + 2 * claimMs
    let head = await store.head(key)
    /** Revision of the head with the last claim that this process has waited for. */
    let waitedFor: number | undefined
    while (clock.elapsed() < until) {
      const known = await this.#definitions.read(key, head)
      const fresh = this.#freshIn(question, known)
      if (fresh) return fresh
      // An earlier attempt made this claim, but the response of the store was lost.
      if (head?.entry.claim?.id === id)
        return this.#call(question, trigger, { id, known, claimed: head })
      if (head && head.revision !== waitedFor && this.#isClaimed(head)) {
        waitedFor = head.revision
        const after = await this.#waitForClaim(key, head, claimMs)
        const answer = await this.#answerOfOther(question, head, after)
        if (answer) return answer
        head = after
        continue
      }
      const claimed = await this.#claim(question, head, { id, until: clock.now() + claimMs })
      if (claimed) return this.#call(question, trigger, { id, known, claimed })
      head = await store.head(key)
    }
    const reason = 'other calls for the agent did not end in time'
    const known = await this.#definitions.read(key, head)
    return this.#answerTo(question, known, { kind: 'unreachable', reason })
  }
  #freshIn(question: ResolverQuestion, known: Stored): KnownDefinition | undefined {
    const { clock, measure } = this.#parts
    const definition = definitionIn(known)
    if (!definition || !isFresh(question.configuration.settings, definition, clock.now()))
      return undefined
    measure.definitionServed('fresh', this.#age(definition))
    return definition
  }
  #age({ at }: KnownDefinition): number {
    return Math.max(0, this.#parts.clock.now() - at) / 1000
  }
  /** Returns the answer that results from the outcome of a call, and measures it. */
  #answerTo(question: ResolverQuestion, known: Stored, outcome: CalloutOutcome): Answer {
    const { clock, measure } = this.#parts
    const { settings } = question.configuration
    const resolution = resolutionOf(settings, definitionIn(known), outcome, clock.now())
    if ('use' in resolution) {
      if (resolution.stale) measure.definitionServed('stale', this.#age(resolution.use))
      return resolution.use
    }
    measure.definitionFailed(resolution.fail)
    return refuse(resolution.fail, { agent_id: question.agent_id, reason: resolution.reason })
  }

  /** Whether another process makes a call, so that its outcome must be awaited. */
  #isClaimed({ entry: { claim } }: Versioned<Head>): boolean {
    const remaining = claim ? claim.until - this.#parts.clock.now() : 0
    return remaining > 0 && remaining <= MAX_CLAIM_MS
  }
  /**
   * Waits until another process's claim ends or expires, for at most `limit` milliseconds, because
   * the clock of that process may be ahead. Returns the head that was read last.
   */
  async #waitForClaim(
    key: AgentKey,
    { entry: { claim }, revision }: Versioned<Head>,
    limit: number,
  ): Promise<Versioned<Head> | undefined> {
    const { store, clock } = this.#parts
    const timeout = Math.min(limit, Math.max(0, (claim?.until ?? 0) - clock.now()))
    const until = clock.elapsed() + timeout
    for (let pause: number = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.last)) {
      const head = await store.head(key)
      if (!head || head.revision !== revision || clock.elapsed() >= until) return head
      await sleep(clock, pause)
    }
  }
  /**
   * Returns the answer that results from the call of another process, or undefined if the call did
   * not end, was made with another configuration (D4), or left nothing to use.
   * @param before the head with the claim of the call; `after` was read after the wait for it.
   */
  async #answerOfOther(
    question: ResolverQuestion,
    before: Versioned<Head>,
    after: Versioned<Head> | undefined,
  ): Promise<Answer | undefined> {
    const ended = after?.entry.ended
    if (
      !ended ||
      ended.id !== before.entry.claim?.id ||
      ended.configuration !== question.configuration.updated_at
    )
      return undefined
    const value = await this.#definitions.read(keyOf(question), after)
    const outcome = outcomeOf(ended)
    return outcome ? this.#answerTo(question, value, outcome) : definitionIn(value)
  }
  /** Claims the next call for an agent. Returns undefined if the head has changed. */
  async #claim(
    question: ResolverQuestion,
    head: Versioned<Head> | undefined,
    { id, until }: { readonly id: string; readonly until: number },
  ): Promise<Versioned<Head> | undefined> {
    const { updated_at } = question.configuration
    const entry: Head = { ...head?.entry, claim: { id, configuration: updated_at, until } }
    const revision = await this.#parts.store.putHead(keyOf(question), entry, head?.revision ?? 0)
    return revision === undefined ? undefined : { entry, revision }
  }

  /** Makes the call for which this process has the claim, and stores its outcome. */
  async #call(question: ResolverQuestion, trigger: TriggerKind, own: OwnClaim): Promise<Answer> {
    const { call, clock } = this.#parts
    const { id, known } = own
    const startedAt = clock.elapsed()
    const result = await call(question, trigger, definitionIn(known)?.digest, id)
    const answer = this.#answerTo(question, known, result.outcome)
    this.#reportCall(question, id, result, answer, (clock.elapsed() - startedAt) / 1000)
    await this.#record(question, own, result.outcome, answer)
    return answer
  }
  #reportCall(
    question: ResolverQuestion,
    id: string,
    { outcome, label, detail }: CallResult,
    answer: Answer,
    seconds: number,
  ): void {
    const { clock, log, measure } = this.#parts
    const answered =
      outcome.kind === 'unknown_agent' ||
      (!isRefusal(answer) && (outcome.kind === 'bundle' || outcome.kind === 'unchanged'))
    // An `unchanged` response is invalid if no definition is stored.
    const shown = answered || label !== 'unchanged' ? label : 'invalid'
    measure.resolverCalled(shown, answered, seconds, clock.now())
    if (answered) return
    log.warn(
      {
        event: 'definition_resolver_failed',
        outcome: shown,
        reason: isRefusal(answer) ? answer.details?.['reason'] : reasonOf(outcome),
        ...(detail !== undefined && { detail }),
        call: id,
        ...keyOf(question),
        used: isRefusal(answer) ? 'nothing' : 'last_known_good',
      },
      'definition resolver gave no valid answer',
    )
  }
  async #record(
    question: ResolverQuestion,
    { id, known, claimed }: OwnClaim,
    outcome: CalloutOutcome,
    answer: Answer,
  ): Promise<void> {
    const { store, log } = this.#parts
    const key = keyOf(question)
    try {
      await this.#definitions.record({ id, key, claimed, known, outcome, answer })
    } catch (err) {
      log.warn({ event: 'definition_not_stored', err, ...key }, 'definition could not be stored')
      // The claim is removed, so that other processes need not wait until it expires.
      const { claim: _, ...before } = claimed.entry
      await store.putHead(key, before, claimed.revision).catch(() => {})
    }
  }
}
