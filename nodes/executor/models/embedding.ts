/** Embeds texts by sending requests to a provider. The caller retries failures. */
import { watchdog } from '../../../client/watchdog.ts'
import type { EmbeddingSettings } from '../../models.ts'
import type { EmbedTexts } from '../embedding/serve.ts'
import { ExecutorFault, type FaultName } from '../faults.ts'
import { faultOf } from './failures.ts'
import { embeddingModelOf, readKey } from './provider.ts'

interface Remote {
  readonly settings: EmbeddingSettings
  readonly env: Readonly<Record<string, string | undefined>>
  /** Milliseconds after which a request to the provider is abandoned. */
  readonly timeout: number
  /** Returns the current time in Unix milliseconds. */
  readonly now: () => number
}

/**
 * Creates the function that requests embeddings from a provider. The function throws
 * `ExecutorFault`.
 */
export function remoteEmbedding({ settings, env, timeout, now }: Remote): EmbedTexts {
  const { access, model, dimensions } = settings
  const { provider } = access
  return async (texts, signal) => {
    let key: string | undefined
    const watch = watchdog(timeout, signal)
    try {
      key = await readKey(access, env)
      // Keeps the library from printing warnings on the console.
      Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })
      const { embedMany } = await import('ai')
      const { embeddings } = await embedMany({
        model: await embeddingModelOf(access, model, key),
        values: texts.map((text) => text.toWellFormed()),
        maxRetries: 0,
        abortSignal: watch.signal,
        ...(dimensions !== undefined && {
          providerOptions: { [access.kind === 'openai' ? 'openai' : provider]: { dimensions } },
        }),
      })
      return embeddings
    } catch (error) {
      const { is, message, retry_after } = watch.silent()
        ? new ExecutorFault(
            'provider_timeout',
            `${provider} did not answer in ${timeout / 1000} s.`,
          )
        : faultOf(error, { signal, provider }, now())
      throw new ExecutorFault(
        nameOf(error) ?? is,
        key ? message.replaceAll(key, '…') : message,
        retry_after,
      )
    } finally {
      watch.stop()
    }
  }
}

/**
 * Returns the fault for a status that the texts did not cause, or undefined for any other status. A
 * status that the texts did not cause must not be reported as `provider_refused`, which means that
 * the provider refused these texts, for example because they are too long.
 */
function nameOf(error: unknown): FaultName | undefined {
  const { statusCode } = error as { readonly statusCode?: number }
  if (statusCode === 401 || statusCode === 403) return 'credentials_unavailable'
  return statusCode === 404 ? 'model_unavailable' : undefined
}
