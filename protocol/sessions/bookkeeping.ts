/** What only the session itself remembers: how a turn is run, which calls are open, which keys were used. */
import type { JsonObject } from '../common.ts'
import type { TurnExchange } from '../channels/exchange.ts'
import type { Event } from '../entry.ts'
import type { Patch } from '../patch.ts'
import type { Block, ResolvedAction, ToolResultBlock } from './turns/blocks.ts'
import type { TurnReport, TurnSpending } from './commands.ts'
import type { AppContext } from './turns/context.ts'
import type { TurnDefinition } from './turns/definition.ts'
import type { Usage } from './schema.ts'

/** One tool call of the segment that is being run. */
export interface Call {
  /** Id of the tool use; unique in the session. */
  readonly id: string
  /** Place of its block in the row. */
  readonly index: number
  /** `ready`: may be dispatched; `job`: a worker or the service has it; `asking`: a question is being opened; `waiting`: for people. */
  readonly state: 'ready' | 'job' | 'asking' | 'waiting' | 'done'
  readonly action?: ResolvedAction
  readonly job_id?: string
  /** Queue of its job. */
  readonly queue?: string
  readonly interaction_id?: string
  readonly expires_at?: string
  /** What the answer decides: the tool's own result, or whether the action may be dispatched. */
  readonly asks?: 'person' | 'approval'
  readonly result?: ToolResultBlock
  /** What the action told about the application. */
  readonly context?: readonly AppContext[]
}
/** The segment that the model wrote last and whose calls are not all settled. */
export interface Segment {
  readonly message_id: string
  readonly turn_index: number
  readonly created_at: string
  readonly content: readonly Block[]
  readonly calls: Readonly<Record<string, Call>>
}
/** How a turn is being ended while its questions are withdrawn. */
export interface Ending {
  readonly status: 'completed' | 'failed' | 'cancelled'
  readonly error_type?: string
  readonly error_message?: string
  readonly budget?: true
  /** One call was made too often. */
  readonly stalled?: TurnReport['stalled']
}
/** What a session keeps of a turn that has not ended, besides its record. Times are Unix milliseconds. */
export interface TurnWork {
  readonly owner: 'direct' | 'nudge' | 'run' | 'channel'
  /** The loop of the run that it belongs to. */
  readonly loop_id?: string
  /** Whose request it is: who approves what needs an approval. */
  readonly asker: {
    readonly id: string
    readonly type: 'user' | 'service_account' | 'agent' | 'system'
  }
  readonly definition: TurnDefinition
  readonly output_schema?: JsonObject
  /** Revision before its first frame, and sequence of its input. */
  readonly boundary: number
  readonly after_sequence: number
  /** Sequence before its first row, context included. */
  readonly before: number
  /** Generations so far, and the turn_index of the next row. */
  readonly generations: number
  readonly next_index: number
  /** Since when it runs, and active milliseconds before that. */
  readonly since?: number
  readonly spent: number
  /** The generation under way; `through`: sequence of the last row it is shown; `message_id`: the row it writes. */
  readonly generation?: {
    readonly job_id: string
    readonly message_id: string
    readonly turn_index: number
    readonly created_at: string
    readonly through: number
  }
  readonly segment?: Segment
  /** How often each call was made, by signature. */
  readonly repeats: Readonly<Record<string, number>>
  readonly usage: Usage
  /** Skills that the model loaded. */
  readonly skills?: readonly string[]
  /** An output that satisfied the schema. */
  readonly output?: JsonObject
  readonly output_source?: 'tool' | 'text'
  readonly ending?: Ending
  /** Calls whose questions are withdrawn for a nudge. */
  readonly interrupted?: readonly string[]
  /** Of a turn of a channel: which one hears its answer. */
  readonly exchange?: TurnExchange
  /** How many runs stand behind the turn; absent: none. Source events of its messages carry it. */
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
  /** What a run that owns a turn is told of it, in the commit that it follows from. */
  | (Event & { readonly type: 'turn.reported'; readonly report: TurnReport })
  | (Event & { readonly type: 'turn.spent'; readonly spending: TurnSpending })
  /** A tool was called; of its arguments the signature says enough to know them again. */
  | (Event & { readonly type: 'call.counted'; readonly id: string; readonly signature: string })
  | (Event & {
      readonly type: 'nudge.keyed'
      readonly id: string
      readonly key?: string
      readonly content_hash: string
      readonly kept: NudgeWork
    })
/** What a session keeps of a nudge. */
export interface NudgeWork {
  readonly turn_id: string
  readonly delivery: 'current_turn' | 'new_turn'
  readonly after_sequence: number
  readonly woke: boolean
  readonly metadata?: JsonObject
  /** For the turn that it becomes if its own ends before. */
  readonly definition: TurnDefinition
  readonly asker: TurnWork['asker']
}
