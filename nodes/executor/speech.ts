/**
 * What a generation is to whoever makes it: a request, and an outcome with one message of the assistant. Boundary: nobody here
 * knows what a turn is; one generation is one answer, and whoever reads it runs the tools.
 */
import type { JsonObject } from '../../protocol/common.ts'
import type { ModelMessage } from '../../protocol/sessions/turns/request.ts'
import type { ShownTool } from '../../protocol/sessions/turns/tools.ts'
import type { Outcome } from './handler.ts'

/** The request of a generation job, as the session wrote it. */
export interface ModelRequest {
  readonly model: string
  readonly system?: readonly { readonly type: 'text'; readonly text: string }[]
  readonly messages: readonly ModelMessage[]
  readonly max_tokens?: number
  readonly temperature?: number
  readonly reasoning_effort?: string
  readonly tools?: readonly ShownTool[]
}
/** A piece of an answer while it is made, as generation.delta spells it. */
export type Delta =
  | { readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string }
/** One attempt at an answer. */
export interface GenerationAttempt {
  /** Of the generation: all attempts at it have it, and no other. */
  readonly id: string
  readonly request: ModelRequest
  readonly provider: string
  readonly model: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** The answer is not wanted any more. */
  readonly signal: AbortSignal
  /** Show a piece. Nothing depends on it. */
  readonly show: (delta: Delta) => void
}
/** Makes an attempt. */
export type Speaker = (asked: GenerationAttempt) => Promise<Outcome>

/** Why a block's answer ended, in the words of messages interfaces. */
export type StopReason = 'end_turn' | 'tool_use' | 'max_tokens' | 'stop_sequence' | 'refusal'
/** Token counts; `input_tokens` are those that no cache had. */
export interface Counts {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_read_input_tokens?: number
  readonly cache_creation_input_tokens?: number
  readonly reasoning_tokens?: number
}
export interface Spoken {
  readonly id: string
  readonly model: string
  readonly content: readonly JsonObject[]
  readonly stop_reason: StopReason
  readonly usage: Counts
}
/** The result of a generation that has an answer. */
export const answered = (message: Spoken): Outcome => ({
  status: 'completed',
  result: { llm_response: { type: 'message', role: 'assistant', ...message } },
})
