/**
 * Events and state that only the session itself uses: how turns are run, which calls are open,
 * which keys were used.
 */

import type { TurnExchange } from '../channels/exchange.ts'
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Patch } from '../patch.ts'
import type { TurnReport, TurnSpending } from './commands.ts'
import type { Usage } from './schema.ts'
import type { Block, ResolvedAction, ToolResultBlock } from './turns/blocks.ts'
import type { AppContext } from './turns/context.ts'
import type { TurnDefinition } from './turns/definition.ts'

/** One tool call of the segment that is being processed. */
export interface Call {
  /** Id of the tool use; unique in the session. */
  readonly id: string
  /** Index of its block in the row. */
  readonly index: number
  /**
   * `ready`: may be dispatched; `job`: a worker or the service executes it; `asking`: a question is
   * being opened; `waiting`: a person must answer.
   */
  readonly state: 'ready' | 'job' | 'asking' | 'waiting' | 'done'
  readonly action?: ResolvedAction
  readonly job_id?: string
  /** Queue of its job. */
  readonly queue?: string
  readonly interaction_id?: string
  readonly expires_at?: string
  /**
   * What the answer determines. `person`: the tool's result; `approval`: whether the action may be
   * dispatched.
   */
  readonly asks?: 'person' | 'approval'
  readonly result?: ToolResultBlock
  /** Application context that the action returned. */
  readonly context?: readonly AppContext[]
}
/** The newest segment of the model, while some of its calls are not settled. */
export interface Segment {
  readonly message_id: string
  readonly turn_index: number
  readonly created_at: string
  readonly content: readonly Block[]
  readonly calls: Readonly<Record<string, Call>>
}
/** How a turn ends; kept while its questions are being withdrawn. */
export interface Ending {
  readonly status: 'completed' | 'failed' | 'cancelled'
  readonly error_type?: string
  readonly error_message?: string
  readonly budget?: true
  /** Set when the same call was repeated too often. */
  readonly stalled?: TurnReport['stalled']
}
/** State of a turn that has not ended, in addition to its record. Times are Unix milliseconds. */
export interface TurnWork {
  readonly owner: 'direct' | 'nudge' | 'run' | 'channel'
  /** The loop that started the turn's run. */
  readonly loop_id?: string
  /**
   * The principal that requested the turn. A user or service account receives the turn's questions
   * by default.
   */
  readonly asker: {
    readonly id: string
    readonly type: 'user' | 'service_account' | 'agent' | 'system'
  }
  readonly definition: TurnDefinition
  readonly output_schema?: JsonObject
  /**
   * `boundary`: revision before the turn's first frame; `after_sequence`: sequence of its input.
   */
  readonly boundary: number
  readonly after_sequence: number
  /** Sequence before its first row, context rows included. */
  readonly before: number
  /**
   * `generations`: number of generations so far; `next_index`: the `turn_index` of the next row.
   */
  readonly generations: number
  readonly next_index: number
  /** `since`: start of the current active period; `spent`: active milliseconds before it. */
  readonly since?: number
  readonly spent: number
  /**
   * The running generation. `through`: sequence of the last row that the model is shown;
   * `message_id`: the row that the generation writes.
   */
  readonly generation?: {
    readonly job_id: string
    readonly message_id: string
    readonly turn_index: number
    readonly created_at: string
    readonly through: number
  }
  readonly segment?: Segment
  /** Number of equal calls so far, by signature. */
  readonly repeats: Readonly<Record<string, number>>
  readonly usage: Usage
  /** Skills that the model loaded. */
  readonly skills?: readonly string[]
  /** An output that satisfies the schema. */
  readonly output?: JsonObject
  readonly output_source?: 'tool' | 'text'
  readonly ending?: Ending
  /** Calls whose questions are being withdrawn because of a nudge. */
  readonly interrupted?: readonly string[]
  /** For a turn of a channel: the channel that receives the answer. */
  readonly exchange?: TurnExchange
  /**
   * Number of runs in the causal chain that led to the turn; absent: none. Source events of its
   * messages carry this number.
   */
  readonly depth?: number
}

export type SessionBookkeeping =
  | (Event & {
      readonly type: 'turn.admitted'
      readonly id: string
      readonly key?: string
      readonly work: TurnWork
    })
  | (Event & {
      readonly type: 'turn.noted'
      readonly id: string
      readonly work: Patch<TurnWork>
      readonly tokens?: number
    })
  | (Event & {
      readonly type: 'call.noted'
      readonly turn_id: string
      readonly id: string
      readonly call: Patch<Call>
    })
  /** Reports the end of a turn to the run that owns it, in the commit that ends it. */
  | (Event & { readonly type: 'turn.reported'; readonly report: TurnReport })
  | (Event & { readonly type: 'turn.spent'; readonly spending: TurnSpending })
  /** A tool was called. The signature identifies equal calls without storing all arguments. */
  | (Event & { readonly type: 'call.counted'; readonly id: string; readonly signature: string })
  | (Event & {
      readonly type: 'nudge.keyed'
      readonly id: string
      readonly key?: string
      readonly content_hash: string
      readonly kept: NudgeWork
    })
/** State of a nudge that the session stores. */
export interface NudgeWork {
  readonly turn_id: string
  readonly delivery: 'current_turn' | 'new_turn'
  readonly after_sequence: number
  readonly woke: boolean
  readonly metadata?: JsonObject
  /** For the new turn that the nudge starts if its own turn ends without it. */
  readonly definition: TurnDefinition
  readonly asker: TurnWork['asker']
}
