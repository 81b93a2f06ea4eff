/**
 * Performs the generations that the service executes itself. A job specifies a provider and a
 * model, and the provider's `GenerateAnswer` makes one attempt. Generations that workers execute
 * are never accepted.
 */

import type { Files, Log } from '../../gateway/ports.ts'
import {
  hasInlineFiles,
  refersToFiles,
  withFileBytes,
  withoutInlineFiles,
} from '../../gateway/sessions/inline.ts'
import { findModel, isAllowed, type Models, readsType } from '../../protocol/agents/models.ts'
import type { Artifact } from '../../protocol/artifacts/schema.ts'
import { limits } from '../../protocol/sessions/limits.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import { ExecutorFault, failedOutcome } from './faults.ts'
import type { Handler, Outcome } from './handler.ts'
import type { Previewing } from './preview.ts'
import type { GenerateAnswer, GenerationAttempt, ModelRequest } from './speech.ts'

interface Generations {
  readonly models: Models
  /** The functions that generate answers, by the name of their provider. */
  readonly speakers: Readonly<Record<string, GenerateAnswer>>
  readonly preview: Previewing
  readonly files: Files | undefined
  /**
   * Returns a function that looks up the conversion of a file of the session, and may wait until
   * the conversion has ended (`conversionsOf`).
   */
  conversions(
    project: string,
    session_id: string | undefined,
    signal: AbortSignal,
  ): (artifact_id: string) => Promise<Artifact['conversion']>
  readonly log: Log
  /** Returns the current time in Unix milliseconds. */
  readonly now: () => number
}

/**
 * Milliseconds for which a stopping executor waits for a generation. The time is short, because the
 * turn is waiting, and another executor can repeat the generation without harm.
 */
const STOP_GRACE_MS = 1000

/** Creates the handler of generations. */
export function generations({
  models,
  speakers,
  preview,
  files,
  conversions,
  log,
  now,
}: Generations): Handler {
  /**
   * Finds the model of a job. The model of a summary may belong to a different provider than the
   * model of the turn.
   */
  const find = ({ provider = '', model = '' }: ClaimedJob, request: ModelRequest | undefined) => {
    const text = request?.model ?? model
    return findModel(models, `${provider}/${text}`) ?? findModel(models, text)
  }
  /**
   * Makes one attempt. If the provider refuses a conversation with files, the request is repeated
   * without the files, because a file that the provider does not accept must not end the
   * conversation.
   */
  async function answer(
    speaker: GenerateAnswer,
    asked: Omit<GenerationAttempt, 'request'>,
    request: ModelRequest,
    readable: (type: string) => boolean,
    project: string,
    job: ClaimedJob,
  ): Promise<Outcome> {
    const refers = refersToFiles(request.messages)
    const conversion = conversions(project, job.session_id, asked.signal)
    const shown = async (what: typeof readable) =>
      refers
        ? withFileBytes(files, project, request.messages, {
            most: limits.shown,
            reads: what,
            conversion,
          }).catch((error: unknown) => {
            log.warn(
              { event: 'conversation_files_read_failed', err: error, job: job.id },
              'conversation files read failed',
            )
            return undefined
          })
        : request.messages
    const attempt = async (what: typeof readable, inline: boolean): Promise<Outcome> => {
      const messages = await shown(what)
      if (!messages)
        return failedOutcome(
          new ExecutorFault(
            'files_unavailable',
            'The files of the conversation could not be read.',
          ),
          asked.attempt,
          0,
        )
      return speaker({
        ...asked,
        request: { ...request, messages: inline ? messages : withoutInlineFiles(messages) },
      })
    }
    const outcome = await attempt(readable, true)
    return outcome.error_type === 'provider_refused' && (refers || hasInlineFiles(request.messages))
      ? attempt(() => false, false)
      : outcome
  }

  return {
    graceMs: STOP_GRACE_MS,
    takes: (_, { kind, executor_kind }) =>
      kind === 'llm_generation' && executor_kind === 'server_worker' ? {} : undefined,
    async perform({ project, job, signal }) {
      const request = job.spec['request'] as ModelRequest | undefined
      // A missing request means that the session no longer waits for the answer.
      if (!request) return { status: 'cancelled' }
      const model = find(job, request)
      const speaker = model && speakers[model.provider]
      if (!model || !speaker || !isAllowed(models, model))
        return failedOutcome(
          new ExecutorFault(
            'model_unavailable',
            `The service no longer has the model ${job.provider}/${request.model}.`,
          ),
          job.claim_attempt,
          0,
        )
      const shown = preview(project, job)
      const began = now()
      const asked = {
        id: job.id,
        provider: model.provider,
        model: model.id,
        context_window_tokens: model.context_window_tokens,
        attempt: job.claim_attempt,
        signal,
        show: shown.show,
      }
      const outcome = await answer(
        speaker,
        asked,
        { ...request, model: model.id },
        (type) => readsType(model, type),
        project,
        job,
      )
      shown.end()
      log.debug(
        {
          event: 'generation_ended',
          job: job.id,
          provider: model.provider,
          model: model.id,
          attempt: job.claim_attempt,
          ms: now() - began,
          status: outcome.status,
          ...(outcome.error_type !== undefined && { fault: outcome.error_type }),
        },
        'model generation ended',
      )
      return outcome
    },
  }
}
