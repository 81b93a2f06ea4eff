/**
 * The configuration of a turn, resolved at admission: agent, model, tools and budget. It does not
 * change while the turn lives, even if the agent's configuration does.
 */
import type { EffectiveDefinition, EffectiveSkill } from '../../agents/definition.ts'
import type { InlineConfig } from '../../agents/inline.ts'
import type { Price } from '../../agents/models.ts'
import type { JsonObject } from '../../common.ts'
import type { Refusal } from '../../errors.ts'

/** The holders of a role, who may approve calls of a destructive action. */
export interface Approver {
  /** `role:<name or id>`: a target of the interaction. */
  readonly target: string
  /**
   * The only principal that had the role when the turn was admitted; absent: there were several.
   */
  readonly sole?: string
}
/**
 * A tool that a turn may use. Grants and permissions were checked when the tool was resolved; the
 * session only offers and dispatches it.
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
  /** The executor of the action: a worker of the project, or the service itself. */
  readonly kind: 'worker' | 'http' | 'builtin'
  readonly queue?: string
  readonly environment_id?: string
  /**
   * For a destructive action. Absent in turns that older releases admitted: the turn's requester
   * approves, or administrators and owners if the requester is an agent or the service.
   */
  readonly approvers?: readonly Approver[]
}
/** A definition in which all layers of configuration are resolved. */
export interface TurnDefinition
  extends Pick<
    EffectiveDefinition,
    'instructions' | 'route' | 'effort' | 'timeout_seconds' | 'compaction' | 'tool_presentation'
  > {
  readonly agent_id: string
  readonly agent_name: string
  /** Organization and project, for the executor of the turn's jobs. */
  readonly scope: { readonly org_id: string; readonly project_id: string }
  readonly tools: readonly GrantedTool[]
  readonly skills: readonly EffectiveSkill[]
  /** Text about the agent's memory that the model receives after the instructions. */
  readonly memory?: string
  /** Why that text could not be produced; the turn fails with this message. */
  readonly memory_fault?: string
  readonly max_tokens?: number
  /**
   * Limits that differ from the defaults: generations of the turn, and equal tool calls (0:
   * unlimited).
   */
  readonly max_generations?: number
  readonly max_repeats?: number
  /**
   * The project requires that another principal than the requester approves destructive actions.
   */
  readonly separate_approver?: true
  /** The price of tokens; absent: unknown. */
  readonly price?: Price
}
/**
 * Added by the gateway to a turn: the resolved definition, and the inline config to store (absent
 * keeps it, null clears it).
 */
export interface Defined {
  readonly definition: TurnDefinition
  readonly config?: InlineConfig | null
}
/**
 * Added instead of a definition when none could be resolved but the request has a key or may join a
 * turn. A known turn or nudge is still returned, and a running turn still receives the input; no
 * new turn starts.
 */
export interface Unfit {
  readonly unfit: Refusal
}
