/**
 * What a turn runs with, resolved when it is admitted: by whom, with which model, tools and budget. It stays as it was
 * admitted for as long as the turn lives, however the agent changes meanwhile.
 */
import type { EffectiveDefinition, EffectiveSkill } from '../../agents/definition.ts'
import type { InlineConfig } from '../../agents/inline.ts'
import type { Price } from '../../agents/models.ts'
import type { JsonObject } from '../../common.ts'
import type { Refusal } from '../../errors.ts'

/** Principals that may approve the call of a destructive action: those with a role. */
export interface Approver {
  /** `role:<name or id>`: a target of the interaction. */
  readonly target: string
  /** The only principal with the role when the turn was admitted; absent: there were several. */
  readonly sole?: string
}
/** A tool that a turn may use. Whoever resolves tools has checked grants and rights; the session only offers and dispatches them. */
export interface GrantedTool {
  /** Dotted name of the action. */
  readonly name: string
  readonly description?: string
  readonly input_schema?: JsonObject
  /** A destructive action is asked of a person each time. */
  readonly annotations: {
    readonly idempotent?: boolean
    readonly destructive?: boolean
    readonly read_only?: boolean
  }
  /** Who does it: a worker of the project, or the service itself. */
  readonly kind: 'worker' | 'http' | 'builtin'
  readonly queue?: string
  readonly environment_id?: string
  /** Of a destructive action. Absent in turns that older releases admitted: the asker of the turn approves. */
  readonly approvers?: readonly Approver[]
}
/** A definition with every layer settled. */
export interface TurnDefinition
  extends Pick<
    EffectiveDefinition,
    'instructions' | 'route' | 'effort' | 'timeout_seconds' | 'compaction' | 'tool_presentation'
  > {
  readonly agent_id: string
  readonly agent_name: string
  /** Where it runs, for whoever executes its jobs. */
  readonly scope: { readonly org_id: string; readonly project_id: string }
  readonly tools: readonly GrantedTool[]
  readonly skills: readonly EffectiveSkill[]
  /** Text about the agent's memory that goes to the model after the instructions. */
  readonly memory?: string
  /** Why that text could not be made: the turn fails with it. */
  readonly memory_fault?: string
  readonly max_tokens?: number
  /** How often the model is asked, and equal tool calls that are allowed (0: any number), when that is not what every turn may. */
  readonly max_generations?: number
  readonly max_repeats?: number
  /** The project wants another principal than the asker to approve destructive actions. */
  readonly separate_approver?: true
  /** What tokens cost; absent: nothing is known. */
  readonly price?: Price
}
/** What the edge hands over with a turn: the settled definition, and the inline config to store: absent keeps, null clears. */
export interface Defined {
  readonly definition: TurnDefinition
  readonly config?: InlineConfig | null
}
/** What it hands over when there is none but the request has a key, or may join a turn: a turn or nudge that is known is answered, a turn under way is told, and nothing else begins. */
export interface Unfit {
  readonly unfit: Refusal
}
