/**
 * What a turn runs with, resolved when it is admitted: by whom, with which model, tools and budget. It stays as it was
 * admitted for as long as the turn lives, however the agent changes meanwhile.
 */
import type { Open } from '../common.ts'
import type { InlineConfig } from './config.ts'

/** A tool that a turn may use. Whoever resolves tools has checked grants and rights; the session only offers and dispatches them. */
export interface GrantedTool {
  /** Dotted name of the action. */
  readonly name: string
  readonly description?: string
  readonly input_schema?: Open
  /** A destructive action is asked of a person each time. */
  readonly annotations: { readonly idempotent?: boolean; readonly destructive?: boolean; readonly read_only?: boolean }
  /** Who does it: a worker of the project, or the service itself. */
  readonly kind: 'worker' | 'http' | 'builtin'
  readonly queue?: string
  readonly environment_id?: string
}
/** A skill that the model may load in a turn; once loaded, its tools restrict the rest of the turn. An empty list restricts nothing. */
export interface GrantedSkill {
  readonly name: string
  readonly description?: string
  readonly instructions: string
  readonly allowed_tools: readonly string[]
}

/** A definition with every layer settled. */
export interface TurnDefinition {
  readonly agent_id: string
  readonly agent_name: string
  /** Where it runs, for whoever executes its jobs. */
  readonly scope: { readonly org_id: string; readonly project_id: string }
  readonly instructions: string
  /** `worker`: a job for a worker that advertises exactly this pair; `managed`: one for an executor of the service. */
  readonly route: { readonly mode: 'managed' | 'worker'; readonly provider: string; readonly model: string; readonly environment_id?: string }
  readonly effort?: string
  /** Budget of active execution. */
  readonly timeout_seconds: number
  readonly tool_presentation: 'flat' | 'meta'
  readonly tools: readonly GrantedTool[]
  readonly skills: readonly GrantedSkill[]
  readonly compaction: { readonly strategy: 'auto' | 'manual' | 'disabled'; readonly threshold_tokens: number; readonly summary_model?: string }
  /** Text about the agent's memory that goes to the model after the instructions. */
  readonly memory?: string
  readonly max_tokens?: number
}
/** What the edge hands over with a turn: the settled definition, and the inline config to store: absent keeps, null clears. */
export interface Defined {
  readonly definition: TurnDefinition
  readonly config?: InlineConfig | null
}
