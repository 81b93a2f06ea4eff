/**
 * The configuration of a turn, which is resolved at its admission: agent, model, tools and budget.
 * It does not change during the turn, even if the configuration of the agent changes.
 */
import type { EffectiveDefinition, EffectiveSkill } from '../../agents/definition.ts'
import type { InlineConfig } from '../../agents/inline.ts'
import type { Price } from '../../agents/models.ts'
import type { JsonObject } from '../../common.ts'
import type { JobEnvironment } from '../../environments/commands.ts'
import type { Refusal } from '../../errors.ts'

/** Principals that may approve calls to a destructive action: the holders of a role. */
export interface Approver {
  /** The target of the interaction, of the form `role:<name or id>`. */
  readonly target: string
  /**
   * Id of the only principal that held the role when the turn was admitted; absent when there were
   * several.
   */
  readonly sole?: string
}
/**
 * A tool that a turn may use. Assignments and permissions were checked when the definition was
 * resolved. The session only offers the tool and dispatches its calls.
 */
export interface GrantedTool {
  /** Dotted name of the action. */
  readonly name: string
  readonly description?: string
  readonly input_schema?: JsonObject
  /** A destructive action requires the approval of a person for each call. */
  readonly annotations: {
    readonly idempotent?: boolean
    readonly destructive?: boolean
    readonly read_only?: boolean
  }
  /** Whether a worker (`worker`) or the service (`http`, `builtin`) executes the action. */
  readonly kind: 'worker' | 'http' | 'builtin'
  readonly queue?: string
  readonly environment_id?: string
  /**
   * Present only for a destructive action. Turns that earlier releases admitted lack this field. In
   * such a turn, the requester approves the calls. If the requester is an agent or the service,
   * administrators and owners approve the calls.
   */
  readonly approvers?: readonly Approver[]
}
/**
 * The environment in which the tools of a turn work. `use`: the environment data in the jobs of the
 * turn.
 */
export interface TurnEnvironment {
  readonly id: string
  readonly use: JobEnvironment
}
/** A definition that is resolved from all sources of configuration. */
export interface TurnDefinition
  extends Pick<
    EffectiveDefinition,
    'instructions' | 'route' | 'effort' | 'timeout_seconds' | 'compaction' | 'tool_presentation'
  > {
  readonly agent_id: string
  readonly agent_name: string
  /** Ids of the organization and the project, which the turn's generation jobs include. */
  readonly scope: { readonly org_id: string; readonly project_id: string }
  readonly tools: readonly GrantedTool[]
  readonly skills: readonly EffectiveSkill[]
  /** Text from the agent's memory. The model receives it after the instructions. */
  readonly memory?: string
  /**
   * The reason why `memory` is absent: the memory is larger than its limit. The turn fails with
   * this message.
   */
  readonly memory_fault?: string
  /**
   * Text about the project's tables. The model receives it after the memory. Present if a tool of
   * the turn works on tables and the project has tables.
   */
  readonly tables?: string
  /** The environment for tools that require one. */
  readonly environment?: TurnEnvironment
  readonly max_tokens?: number
  /**
   * Overrides the default maximum number of generations in the turn. A value larger than the
   * default has no effect.
   */
  readonly max_generations?: number
  /** Overrides the default maximum number of identical tool calls; 0 means unlimited. */
  readonly max_repeats?: number
  /** Present if a principal other than the requester must approve destructive actions. */
  readonly separate_approver?: true
  /** The price of tokens; absent when it is unknown. */
  readonly price?: Price
}
/**
 * The data that the gateway adds to a request for a turn: the resolved definition, and the inline
 * config to store. An absent config leaves the stored config unchanged, and null removes it.
 */
export interface Defined {
  readonly definition: TurnDefinition
  readonly config?: InlineConfig | null
}
/**
 * The data that the gateway adds when no definition could be resolved, but the request has an
 * idempotency key or may join a turn. In this case, no new turn starts. The session still returns a
 * turn or nudge that is already stored under the key, and a running turn still receives the input.
 */
export interface UnresolvedDefinition {
  readonly unfit: Refusal
}
