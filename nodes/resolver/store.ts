/**
 * Stores the definitions that the resolver sent, in a bucket on disk. The bucket survives restarts
 * and is part of backups, so `last_known_good` also works after a restart or a restore.
 *
 * Each agent has two entries. The value is the definition, which changes seldom and may be large.
 * The head is small and is written for each call. It records the call in progress, the outcome of
 * the last call, and the last confirmation of the value.
 */
import type { KnownDefinition } from '../../protocol/resolver/callout.ts'
import { token } from '../../protocol/subjects.ts'
import type { Registry } from '../host/ports.ts'

/** An agent of a project. */
export interface AgentKey {
  readonly project: string
  readonly agent_id: string
}
/** Identifies a call: its id, and the version of the configuration that it uses. */
interface CallIdentity {
  readonly id: string
  readonly configuration: string
}
/** The state of the calls for an agent. Times are Unix milliseconds. */
export interface Head {
  /** The call in progress. After `until`, its process counts as dead. */
  readonly claim?: CallIdentity & { readonly until: number }
  /** The last call that ended. `reason` states why there is no definition. */
  readonly ended?: CallIdentity & {
    readonly outcome: 'definition' | 'unknown_agent' | 'unavailable'
    readonly reason?: string
  }
  /** When the resolver last sent or confirmed the value, and the revision of that value. */
  readonly confirmed?: { readonly revision: number; readonly at: number }
}
/** An entry, and its revision for the next compare-and-set. */
export interface Versioned<T> {
  readonly entry: T
  readonly revision: number
}

/** The definition of an agent; null after the resolver reported the agent as unknown. */
export type Value = KnownDefinition | null

/** All methods throw when the leader of the bucket cannot be reached. */
export interface DefinitionStore {
  head(key: AgentKey): Promise<Versioned<Head> | undefined>
  /**
   * Replaces the head if it has this revision (0: if there is no head). Returns the new revision,
   * or undefined when the head has another revision.
   */
  putHead(key: AgentKey, head: Head, revision: number): Promise<number | undefined>
  value(key: AgentKey): Promise<Versioned<Value> | undefined>
  /** Stores the value under the same condition as `putHead`. */
  putValue(key: AgentKey, value: Value, revision: number): Promise<number | undefined>
  /** Removes all entries of a project. */
  forget(project: string): Promise<void>
}

const keyOf = (kind: 'head' | 'value', { project, agent_id }: AgentKey): string =>
  `${kind}.${token(project)}.${token(agent_id)}`

/** Creates the store over a registry that does not encode keys. */
export function createDefinitionStore(registry: Registry): DefinitionStore {
  async function read<T>(key: string): Promise<Versioned<T> | undefined> {
    const found = await registry.get(key)
    return found && { entry: JSON.parse(found.value) as T, revision: found.revision }
  }
  return {
    head: (key) => read<Head>(keyOf('head', key)),
    putHead: (key, head, revision) =>
      registry.put(keyOf('head', key), JSON.stringify(head), revision),
    value: (key) => read<Value>(keyOf('value', key)),
    putValue: (key, value, revision) =>
      registry.put(keyOf('value', key), JSON.stringify(value), revision),
    forget: (project) => registry.delete(`*.${token(project)}.*`),
  }
}
