/**
 * The interface of a generation: a request, and an outcome with one message from the assistant. The
 * interface does not depend on turns: one generation produces one answer, and the session that
 * receives the answer executes its tool calls.
 */
import type { JsonObject } from '../../protocol/common.ts'
import type { ModelMessage } from '../../protocol/sessions/turns/request.ts'
import type { ShownTool } from '../../protocol/sessions/turns/tools.ts'
import type { Outcome } from './handler.ts'

/** The request in a generation job, as the session wrote it. */
export interface ModelRequest {
  readonly model: string
  readonly system?: readonly { readonly type: 'text'; readonly text: string }[]
  readonly messages: readonly ModelMessage[]
  readonly max_tokens?: number
  readonly temperature?: number
  readonly reasoning_effort?: string
  readonly tools?: readonly ShownTool[]
}
/** A chunk of an unfinished answer, in the form of `generation.delta`. */
export type Delta =
  | { readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string }
/** The input of one attempt at a generation. */
export interface GenerationAttempt {
  /** Id of the generation, which is unique and the same for all of its attempts. */
  readonly id: string
  readonly request: ModelRequest
  readonly provider: string
  readonly model: string
  /** Size of the model's context; absent if the size is unknown. */
  readonly context_window_tokens?: number
  /** Number of the attempt, from 1. */
  readonly attempt: number
  /** Aborted when the answer is no longer wanted. */
  readonly signal: AbortSignal
  /** Shows a chunk to followers, without a delivery guarantee. */
  readonly show: (delta: Delta) => void
}
/** Makes one attempt. */
export type GenerateAnswer = (asked: GenerationAttempt) => Promise<Outcome>

/** The reason why an answer ended, in the vocabulary of the Messages API. */
export type StopReason = 'end_turn' | 'tool_use' | 'max_tokens' | 'stop_sequence' | 'refusal'
/** Token counts; `input_tokens` excludes tokens that a cache served or stored. */
export interface Counts {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_read_input_tokens?: number
  readonly cache_creation_input_tokens?: number
  readonly reasoning_tokens?: number
}
export interface GeneratedMessage {
  readonly id: string
  readonly model: string
  readonly content: readonly JsonObject[]
  readonly stop_reason: StopReason
  readonly usage: Counts
}
/** Returns the outcome of a generation that has an answer. */
export const answeredOutcome = (message: GeneratedMessage): Outcome => ({
  status: 'completed',
  result: { llm_response: { type: 'message', role: 'assistant', ...message } },
})
