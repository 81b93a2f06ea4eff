/**
 * Events and state of a session that are not part of the transcript: the state of turns, unsettled
 * tool calls, and used idempotency keys.
 */

import type { TurnExchange } from '../channels/exchange.ts'
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Causation } from '../events/sources.ts'
import type { Patch } from '../patch.ts'
import type { TurnReport, TurnSpending } from './commands.ts'
import type { Usage } from './schema.ts'
import type { Block, ResolvedAction, ToolResultBlock } from './turns/blocks.ts'
import type { AppContext } from './turns/context.ts'
import type { TurnDefinition } from './turns/definition.ts'

/** One tool call of the segment that is being processed. */
export interface Call {
  /** Id of the tool use, unique in the session. */
  readonly id: string
  /** Index of the block of the tool use in the row. */
  readonly index: number
  /**
   * `ready`: the call may be dispatched. `job`: a worker or the service executes it. `asking`: an
   * interaction is being opened. `waiting`: a person must answer. `done`: it has a result.
   */
  readonly state: 'ready' | 'job' | 'asking' | 'waiting' | 'done'
  readonly action?: ResolvedAction
  readonly job_id?: string
  /** Name of the queue of the job. */
  readonly queue?: string
  readonly interaction_id?: string
  readonly expires_at?: string
  /**
   * The effect of a person's answer. `person`: the answer becomes the result of the tool.
   * `approval`: the answer decides whether the action may be dispatched.
   */
  readonly asks?: 'person' | 'approval'
  readonly result?: ToolResultBlock
  /** Application context that the action returned. */
  readonly context?: readonly AppContext[]
}
/** The newest segment of the model, stored while some of its calls are not settled. */
export interface Segment {
  readonly message_id: string
  readonly turn_index: number
  readonly created_at: string
  readonly content: readonly Block[]
  readonly calls: Readonly<Record<string, Call>>
}
/** The end of a turn, stored while the interactions of the turn are being withdrawn. */
export interface Ending {
  readonly status: 'completed' | 'failed' | 'cancelled'
  readonly error_type?: string
  readonly error_message?: string
  readonly budget?: true
  /** Present when the turn failed because the same call was repeated too often. */
  readonly stalled?: TurnReport['stalled']
}
/**
 * The state of a turn that has not ended, in addition to its record. Times are Unix milliseconds.
 */
export interface TurnWork {
  readonly owner: 'direct' | 'nudge' | 'run' | 'channel'
  /** Id of the loop that started the run of the turn. */
  readonly loop_id?: string
  /**
   * The principal that requested the turn. If it is a user or service account, it is the default
   * target of the questions of the turn.
   */
  readonly asker: {
    readonly id: string
    readonly type: 'user' | 'service_account' | 'agent' | 'system'
  }
  readonly definition: TurnDefinition
  readonly output_schema?: JsonObject
  /** Revision before the first frame of the turn. */
  readonly boundary: number
  /** Sequence of the input of the turn. */
  readonly after_sequence: number
  /** The sequence before the first row of the turn. Context rows of the turn count as its rows. */
  readonly before: number
  /** Number of generations so far. */
  readonly generations: number
  /** The `turn_index` of the next row. */
  readonly next_index: number
  /** Start of the current active period; absent while the turn waits. */
  readonly since?: number
  /** Active milliseconds before the current active period. */
  readonly spent: number
  /**
   * The generation in progress. `through`: sequence of the last row that is shown to the model.
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
  /** How often each call has been made so far, by the signature of the call. */
  readonly repeats: Readonly<Record<string, number>>
  readonly usage: Usage
  /** Names of the skills that the model has loaded. */
  readonly skills?: readonly string[]
  /** The output of the turn, which satisfies the output schema. */
  readonly output?: JsonObject
  readonly output_source?: 'tool' | 'text'
  readonly ending?: Ending
  /** Ids of the calls whose interactions are being withdrawn because of a nudge. */
  readonly interrupted?: readonly string[]
  /** Only for a turn of a channel: the channel that receives the answer. */
  readonly exchange?: TurnExchange
  /**
   * The `depth` of the source events of the turn's messages and questions: the number of runs in
   * the causal chain that led to the turn. If it is absent, it is regarded as 0 or, in a turn of a
   * run, as greater than the maximum.
   */
  readonly depth?: number
  /**
   * The causation of source events that tool calls of the turn cause. Only in turns of runs; absent
   * in turns that earlier releases admitted.
   */
  readonly causation?: Causation
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
  /**
   * The end of a turn, which is sent to the run that owns the turn. It is stored in the commit that
   * ends the turn.
   */
  | (Event & { readonly type: 'turn.reported'; readonly report: TurnReport })
  | (Event & { readonly type: 'turn.spent'; readonly spending: TurnSpending })
  /**
   * A tool was called. The signature identifies equal calls, so that the arguments need not be
   * stored.
   */
  | (Event & { readonly type: 'call.counted'; readonly id: string; readonly signature: string })
  | (Event & {
      readonly type: 'nudge.keyed'
      readonly id: string
      readonly key?: string
      readonly content_hash: string
      readonly kept: NudgeWork
    })
/** The data that the session stores about a nudge in addition to its record. */
export interface NudgeWork {
  readonly turn_id: string
  readonly delivery: 'current_turn' | 'new_turn'
  readonly after_sequence: number
  readonly woke: boolean
  readonly metadata?: JsonObject
  /**
   * The definition of the turn that the nudge starts if its target turn ends before the nudge is
   * delivered.
   */
  readonly definition: TurnDefinition
  readonly asker: TurnWork['asker']
}
