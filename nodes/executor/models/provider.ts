/**
 * Creates clients for the models of providers. The clients use packages of the AI SDK, which are
 * loaded when a request first needs them. The operator configures the URLs of providers, so private
 * addresses are allowed. Redirects are not followed, because requests contain keys.
 */
import { readFile } from 'node:fs/promises'
import type { EmbeddingModel, JSONValue, LanguageModel } from 'ai'
import { endedBySignal } from '../../../client/watchdog.ts'
import type { ProviderAccess } from '../../models.ts'
import { ExecutorFault } from '../faults.ts'

/**
 * Reads the key to which the configuration of a provider refers. The key is read for every request,
 * so that a changed key takes effect immediately. Returns undefined when no key is configured.
 * @throws ExecutorFault when the configured key is missing or empty.
 */
export async function readKey(
  { provider, key }: ProviderAccess,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  if (key === undefined) return undefined
  const name = key.slice(key.indexOf(':') + 1)
  const found = key.startsWith('env:')
    ? env[name]
    : await readFile(name, 'utf8').catch(() => undefined)
  const value = found?.trim() ?? ''
  if (value === '')
    throw new ExecutorFault(
      'credentials_unavailable',
      `The key of the provider ${provider} is missing.`,
    )
  return value
}

/** A `fetch` that never follows redirects, and whose response ends when its signal is aborted. */
const straight: typeof fetch = endedBySignal((input, init) =>
  fetch(input, { ...init, redirect: 'error' }),
)

/**
 * Returns the providers whose key is missing or cannot be read, with the reason. The key is not part
 * of the reason.
 */
export async function keyFaults(
  providers: readonly ProviderAccess[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly provider: string; readonly reason: string }[]> {
  const faults = providers.map(async (access) => {
    const { provider, kind, key } = access
    if (key === undefined)
      return kind === 'openai' || kind === 'anthropic'
        ? [{ provider, reason: 'Its setting has no key.' }]
        : []
    const name = key.slice(key.indexOf(':') + 1)
    const reason = key.startsWith('env:')
      ? `The environment variable ${name} is empty or not set.`
      : `The file ${name} is empty or cannot be read.`
    return readKey(access, env).then(
      () => [],
      () => [{ provider, reason }],
    )
  })
  return (await Promise.all(faults)).flat()
}

/**
 * Creates the client of a model.
 * @throws ExecutorFault when the provider needs a key and has none.
 */
export async function modelOf(
  { provider, kind, base_url }: ProviderAccess,
  model: string,
  key: string | undefined,
): Promise<LanguageModel> {
  if (kind === 'openai-compatible') {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
    return createOpenAICompatible({
      name: provider,
      baseURL: base_url ?? '',
      includeUsage: true,
      fetch: straight,
      ...(key !== undefined && { apiKey: key }),
    })(model)
  }
  // Without a key, these clients would read one from the environment, so a key is required.
  if (key === undefined)
    throw new ExecutorFault('credentials_unavailable', `The provider ${provider} has no key.`)
  const settings = {
    apiKey: key,
    fetch: straight,
    ...(base_url !== undefined && { baseURL: base_url }),
  }
  if (kind === 'openai') {
    const { createOpenAI } = await import('@ai-sdk/openai')
    return createOpenAI(settings)(model)
  }
  const { createAnthropic } = await import('@ai-sdk/anthropic')
  return createAnthropic(settings)(model)
}

/**
 * Creates the client of an embedding model.
 * @throws ExecutorFault when the provider has no embedding models, or needs a key and has none.
 */
export async function embeddingModelOf(
  { provider, kind, base_url }: ProviderAccess,
  model: string,
  key: string | undefined,
): Promise<EmbeddingModel> {
  const settings = { fetch: straight, ...(key !== undefined && { apiKey: key }) }
  if (kind === 'openai-compatible') {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
    return createOpenAICompatible({
      name: provider,
      baseURL: base_url ?? '',
      ...settings,
    }).embeddingModel(model)
  }
  if (kind !== 'openai')
    throw new ExecutorFault('model_unavailable', `${provider} has no embedding models.`)
  // Without a key, this client would read one from the environment, so a key is required.
  if (key === undefined)
    throw new ExecutorFault('credentials_unavailable', `The provider ${provider} has no key.`)
  const { createOpenAI } = await import('@ai-sdk/openai')
  return createOpenAI({
    ...settings,
    ...(base_url !== undefined && { baseURL: base_url }),
  }).embeddingModel(model)
}

/** Thinking budgets of Claude in tokens, by effort. */
const budgets: Readonly<Record<string, number>> = {
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_000,
}
/** Returns the options that are specific to the kind of provider. */
export function optionsOf(
  { provider, kind }: ProviderAccess,
  effort: string | undefined,
): Record<string, Record<string, JSONValue>> {
  if (kind === 'anthropic') {
    const budgetTokens = effort === undefined ? undefined : budgets[effort]
    return budgetTokens === undefined
      ? {}
      : { anthropic: { thinking: { type: 'enabled', budgetTokens } } }
  }
  // This service stores the conversation, so the provider must not.
  if (kind === 'openai')
    return { openai: { store: false, ...(effort !== undefined && { reasoningEffort: effort }) } }
  return effort === undefined ? {} : { [provider]: { reasoningEffort: effort } }
}
