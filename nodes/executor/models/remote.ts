/**
 * Performs generations by sending requests to providers. A generation is one request. The tools
 * that the model calls are not executed here. Every error becomes a named fault. The queue
 * schedules retries, so they do not depend on the executor that made the failed attempt.
 */
import type { ToolSet } from 'ai'
import { watchdog } from '../../../client/watchdog.ts'
import type { ProviderAccess } from '../../models.ts'
import { ExecutorFault, failedWith } from '../faults.ts'
import type { Outcome } from '../handler.ts'
import {
  answered,
  type GenerateAnswer,
  type GenerationAttempt,
  type ModelRequest,
} from '../speech.ts'
import { collect } from './collect.ts'
import { faultOf } from './failures.ts'
import { fitted } from './fit.ts'
import { toMessages, withUsableThinking } from './messages.ts'
import { modelOf, optionsOf, readKey } from './provider.ts'
import { wellFormed } from './well-formed.ts'

interface Remote {
  readonly access: ProviderAccess
  readonly env: Readonly<Record<string, string | undefined>>
  /** Maximum time in milliseconds for which a provider may send nothing. */
  readonly silence: number
  /** Returns the current time in Unix milliseconds. */
  readonly now: () => number
  /** Returns a random number from 0 to 1, which is used as jitter. */
  readonly spread: () => number
}

/** HTTP statuses with which providers refuse a request that exceeds the context of the model. */
const TOO_LONG: readonly number[] = [400, 413, 422]

/** Returns the function that generates answers at a provider. */
export function remoteModel({ access, env, silence, now, spread }: Remote): GenerateAnswer {
  return async (asked) => {
    const { context_window_tokens: tokens = Number.POSITIVE_INFINITY } = asked
    // Thinking that is not sent needs no room in the context.
    const request = {
      ...asked.request,
      messages: withUsableThinking(asked.request.messages, access),
    }
    let status: number | undefined
    const attempt = async (fitting: ModelRequest): Promise<Outcome> => {
      let key: string | undefined
      try {
        key = await readKey(access, env)
        return answered(
          await speak({ ...asked, request: wellFormed(fitting) }, access, key, silence),
        )
      } catch (error) {
        status = (error as { statusCode?: number }).statusCode
        return failedWith(faultOf(error, asked, now()), asked.attempt, spread(), key)
      }
    }
    const outcome = await attempt(fitted(request, tokens, 'usual'))
    // The request may be too long, because its texts have more tokens than expected.
    const long = outcome.status === 'failed' && status !== undefined && TOO_LONG.includes(status)
    const dense = long ? fitted(request, tokens, 'dense') : request
    return dense === request ? outcome : attempt(dense)
  }
}

async function speak(
  { request, provider, model, signal, show }: GenerationAttempt,
  access: ProviderAccess,
  key: string | undefined,
  silence: number,
) {
  // Keeps the library from printing warnings on the console.
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
  const { jsonSchema, streamText, tool } = await import('ai')
  const watch = watchdog(silence, signal)
  const tools: ToolSet = Object.fromEntries(
    (request.tools ?? []).map(({ name, description, input_schema }) => [
      name,
      tool({
        inputSchema: jsonSchema(input_schema),
        ...(description !== undefined && { description }),
      }),
    ]),
  )
  try {
    const { fullStream } = streamText({
      model: await modelOf(access, model, key),
      messages: toMessages(request.messages, access),
      ...systemOf(request),
      ...(Object.keys(tools).length > 0 && { tools }),
      ...(request.max_tokens !== undefined && { maxOutputTokens: request.max_tokens }),
      ...(request.temperature !== undefined && { temperature: request.temperature }),
      maxRetries: 0,
      abortSignal: watch.signal,
      providerOptions: optionsOf(access, request.reasoning_effort),
      // The stream also reports the error. This handler keeps the library from printing it.
      onError: () => {},
      // The service never fetches the URLs in messages. They are sent to the provider, or the
      // attempt fails if the model does not support URLs.
      experimental_download: async (wanted) =>
        wanted.map(({ url, isUrlSupportedByModel }) => {
          if (!isUrlSupportedByModel)
            throw new ExecutorFault(
              'provider_refused',
              `The model does not accept URLs such as ${url.origin}.`,
            )
          return null
        }),
    })
    return await collect(fullStream, provider, model, show, watch.alive)
  } catch (error) {
    throw watch.silent()
      ? new ExecutorFault('provider_timeout', `The provider sent nothing for ${silence / 1000} s.`)
      : error
  } finally {
    watch.stop()
  }
}
const systemOf = ({ system }: ModelRequest): { readonly system?: string } =>
  system && system.length > 0 ? { system: system.map(({ text }) => text).join('\n\n') } : {}
