/** Turns of agents that steps of runs request, and the definitions that executors look up. */
import type { CompactionPolicy, ModelRoute, ThinkingEffort } from '../agents/schema.ts'
import type { EnvironmentBinding, JobEnvironment } from '../environments/commands.ts'
import type { Bundle, TriggerKind } from '../resolver/callout.ts'
import type { SessionLocation, TurnOpening } from '../sessions/commands.ts'
import type { TurnEnvironment } from '../sessions/turns/definition.ts'

/**
 * The turn that an agent step or a check step requests. An executor looks up its definition.
 * Without `agent`, a reviewer that the service itself provides judges the check.
 */
export interface TurnWanted {
  readonly turn_id: string
  /** Id or name of the agent. */
  readonly agent?: string
  /**
   * Id of the principal on whose behalf the run works; absent if it works for the service itself.
   */
  readonly asker?: string
  readonly session: {
    readonly scope: 'loop' | 'agent'
    readonly ref_id: string
    readonly name: string
    readonly title?: string
    readonly visibility?: 'project' | 'private'
    readonly compaction_policy?: CompactionPolicy
  }
  /** The environment for the tools of the turn; the environment of the agent if absent. */
  readonly environment?: TurnEnvironment
  /** The data for creating and using the environment of the agent. */
  readonly agent_environment?: AgentEnvironment
  /** The turn has no tools that work in an environment. */
  readonly no_environment?: true
  /** The origin of the run; absent in requests from older releases. */
  readonly trigger?: TriggerKind
  /** The definition of the agent from the resolver, as the run has stored it. */
  readonly bundle?: AgentBundle
  readonly step: {
    readonly timeout_seconds?: number
    readonly thinking_effort?: ThinkingEffort
    readonly model_route?: ModelRoute
    readonly tool_names?: readonly string[]
    readonly disable_tools?: boolean
    readonly max_turns?: number
    readonly max_duplicate_tool_calls?: number
  }
}
/**
 * A definition from the resolver, with the id and the name of its agent at the time of resolution.
 */
export interface AgentBundle extends Bundle {
  readonly agent_id: string
  readonly agent_name: string
}
/** Whether two definitions of an agent are equal. */
export const isSameBundle = (a: Bundle, b: Bundle): boolean =>
  a.digest === b.digest && JSON.stringify(a.definition) === JSON.stringify(b.definition)
/**
 * The settings that a run specifies for the environment of an agent, without `owner_id`, because
 * the run may not know the id of the agent.
 */
type AgentEnvironment = Omit<EnvironmentBinding, 'mode' | 'owner_id'> &
  Omit<JobEnvironment, 'binding'>
/** The session and the definition of a turn of a run. */
export interface TurnDefined extends Pick<TurnOpening, 'seed' | 'definition'> {
  readonly turn_id: string
  readonly session_id: string
  readonly place: SessionLocation
  /** A newly resolved definition, which the run stores for later turns of the agent. */
  readonly bundle?: AgentBundle
}
