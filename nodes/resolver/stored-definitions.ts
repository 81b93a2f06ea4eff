/**
 * The stored definitions of agents, with a cache in memory, and the recorded outcomes of calls.
 * The invariant D3 of `resolver.ts` applies.
 */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import {
  type CalloutOutcome,
  type KnownDefinition,
  reasonOf,
} from '../../protocol/resolver/callout.ts'
import { isSameBundle } from '../../protocol/runs/turns.ts'
import { createMemory } from './memory.ts'
import type { AgentKey, DefinitionStore, Head, Value, Versioned } from './store.ts'

/** Maximum number of characters of the definitions in memory, as JSON. */
const MAX_CACHED_CHARACTERS = 8 * 2 ** 20

export type Stored = Versioned<Value> | undefined
export const definitionIn = (stored: Stored): KnownDefinition | undefined =>
  stored?.entry ?? undefined

/** A call that has ended, and the claim under which it was made. */
export interface EndedCall {
  readonly id: string
  readonly key: AgentKey
  readonly claimed: Versioned<Head>
  /** What was stored before the call. */
  readonly known: Stored
  readonly outcome: CalloutOutcome
  /** The answer to the callers, as it results from the outcome. */
  readonly answer: KnownDefinition | Refusal
}

const nameOf = ({ project, agent_id }: AgentKey): string => `${project}/${agent_id}`

export class StoredDefinitions {
  readonly #store: DefinitionStore
  readonly #memory = createMemory(MAX_CACHED_CHARACTERS)

  constructor(store: DefinitionStore) {
    this.#store = store
  }
  /** Returns the stored definition, with the time of its last confirmation. */
  async read(key: AgentKey, head: Versioned<Head> | undefined): Promise<Stored> {
    const confirmed = head?.entry.confirmed
    const cached = confirmed && this.#memory.get(nameOf(key), confirmed.revision)
    const found = cached ?? (await this.#store.value(key))
    if (!found?.entry) return found
    if (!cached) this.#memory.set(nameOf(key), found)
    return confirmed?.revision === found.revision && confirmed.at > found.entry.at
      ? { ...found, entry: { ...found.entry, at: confirmed.at } }
      : found
  }
  /** Stores the outcome of a call, and removes its claim. */
  async record(call: EndedCall): Promise<void> {
    const { key, known, claimed, outcome, answer } = call
    const { confirmed } = claimed.entry
    if (outcome.kind === 'unknown_agent') {
      if (known?.entry) await this.#store.putValue(key, null, known.revision)
      await this.#end(call, 'unknown_agent')
      return
    }
    const sent = outcome.kind === 'bundle' || outcome.kind === 'unchanged'
    if (!sent || isRefusal(answer)) {
      await this.#end(call, 'unavailable', confirmed && { confirmed })
      return
    }
    const revision =
      known?.entry && isSameBundle(known.entry, answer)
        ? known.revision
        : await this.#store.putValue(key, answer, known?.revision ?? 0)
    // If the value was not stored, another process has taken over the claim and stored its own
    // result.
    if (revision === undefined) return
    this.#memory.set(nameOf(key), { entry: answer, revision })
    await this.#end(call, 'definition', { confirmed: { revision, at: answer.at } })
  }
  async #end(
    { id, key, claimed, outcome }: EndedCall,
    end: NonNullable<Head['ended']>['outcome'],
    more: Partial<Head> = {},
  ): Promise<void> {
    const { claim } = claimed.entry
    const ended = {
      id,
      configuration: claim?.configuration ?? '',
      outcome: end,
      ...(end === 'unavailable' && { reason: reasonOf(outcome) }),
    }
    await this.#store.putHead(key, { ended, ...more }, claimed.revision)
  }
}
