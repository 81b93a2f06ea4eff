/**
 * Reads the models of the service from a setting: JSON, or the path of a JSON file. API keys are
 * stored elsewhere, in an environment variable or a separate file. This module handles only
 * references to them.
 */
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import {
  efforts,
  findModel,
  fullId,
  type ModelProvider,
  type Models,
  type Price,
} from '../protocol/agents/models.ts'
import { readJson, schemaFault } from './config/json.ts'

const Effort = Type.Enum([...efforts])
const closed = { additionalProperties: false }
const text = Type.String({ minLength: 1, maxLength: 200 })
/** USD per million tokens. */
const usd = Type.Number({ minimum: 0, maximum: 100_000 })
const Cost = Type.Object({ input: usd, output: usd, cache_read: Type.Optional(usd) }, closed)
const KEY = '^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$'
const BASE_URL = '^https?://[^\\s?#]+$'
/** What a text must be, by the pattern that it must match. */
const sentences = {
  [KEY]: 'must be env:<variable> or file:<absolute path>, which name the place of the key',
  [BASE_URL]: 'must be a URL such as http://10.0.0.7:8000/v1, without a query',
}
const Name = Type.String({ pattern: '^[a-z0-9]+([._-][a-z0-9]+)*$', maxLength: 64 })
const Provider = Type.Object(
  {
    provider: Name,
    kind: Type.Enum(['openai-compatible', 'openai', 'anthropic', 'scripted']),
    display_name: Type.Optional(text),
    base_url: Type.Optional(Type.String({ pattern: BASE_URL })),
    key: Type.Optional(Type.String({ pattern: KEY })),
    models: Type.Array(
      Type.Object(
        {
          id: Type.String({ minLength: 1, maxLength: 200, pattern: '^\\S+$' }),
          label: Type.Optional(text),
          context_window_tokens: Type.Integer({ minimum: 1 }),
          description: Type.Optional(Type.String({ maxLength: 1000 })),
          recommended: Type.Optional(Type.Boolean()),
          max_effort: Type.Optional(Effort),
          price: Type.Optional(Cost),
          reads: Type.Optional(Type.Array(Type.Enum(['image', 'pdf']))),
        },
        closed,
      ),
      { maxItems: 500 },
    ),
  },
  closed,
)
const Embedding = Type.Object(
  {
    model: text,
    dimensions: Type.Optional(Type.Integer({ minimum: 1, maximum: 4096 })),
    max_characters: Type.Optional(Type.Integer({ minimum: 100, maximum: 32_000 })),
  },
  closed,
)
const Settings = Type.Object(
  {
    default: Type.Optional(text),
    providers: Type.Array(Provider, { maxItems: 100 }),
    silence_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 280 })),
    embedding: Type.Optional(Embedding),
    ceiling: Type.Optional(
      Type.Object(
        {
          timeout_seconds: Type.Optional(Type.Integer({ minimum: 1 })),
          effort: Type.Optional(Effort),
          models: Type.Optional(Type.Array(text)),
        },
        closed,
      ),
    ),
  },
  closed,
)

/** The access parameters of a provider. */
export interface ProviderAccess
  extends Pick<Static<typeof Provider>, 'provider' | 'kind' | 'base_url'> {
  /** Reference to its API key: `env:<variable>` or `file:<absolute path>`. */
  readonly key?: string
}
/** The model that embeds table rows and the queries of semantic searches. */
export interface EmbeddingSettings {
  /** Id of the model. Vectors of models with different ids are not comparable. */
  readonly id: string
  readonly access: ProviderAccess
  /** Name of the model at the provider. */
  readonly model: string
  /** Number of dimensions that is requested from the provider. The default is that of the model. */
  readonly dimensions?: number
  /** Maximum number of characters of a row that are embedded. */
  readonly max_characters: number
}
/** The public description of the models, and how their providers are reached. */
export interface ModelSettings {
  readonly models: Models
  readonly access: readonly ProviderAccess[]
  /** Milliseconds for which a provider may be silent before an attempt is abandoned. */
  readonly silence: number
  /** Absent if no embedding model is configured. */
  readonly embedding?: EmbeddingSettings
}
/** Default of `max_characters`. Most embedding models read at least 512 tokens. */
const EMBEDDED_CHARACTERS = 4000
/** Name of the embedding model of the built-in provider, for tests. */
const HASHED_MODEL = 'hashed'
/** Default of `silence_seconds`, in seconds. */
const DEFAULT_SILENCE_S = 120

/**
 * Returns the provider that needs no configuration. Its model answers from a script, for getting
 * started and for tests.
 * @param brand the configured brand, in any letter case.
 */
const builtIn = (brand: string): Static<typeof Provider> => ({
  provider: brand.toLowerCase(),
  kind: 'scripted',
  display_name: `${brand} (built in)`,
  models: [
    {
      id: 'scripted',
      label: 'Scripted',
      context_window_tokens: 200_000,
      max_effort: 'max',
      reads: [],
      description: 'Answers by rules instead of a model; for tests and first steps.',
    },
  ],
})

/**
 * Reads the setting. An empty setting configures only the built-in provider. If the setting is
 * invalid, `wrong` states why: it completes a sentence that begins with the name of the setting.
 */
export function readModels(
  setting: string,
  brand: string,
): ModelSettings | { readonly wrong: string } {
  const read = setting.trim() === '' ? { value: { providers: [] } } : readJson(setting)
  if ('wrong' in read) return read
  const { value } = read
  if (!Value.Check(Settings, value)) return schemaFault(Settings, value, sentences)
  const all = [...value.providers, builtIn(brand)]
  const twice = all.find(
    ({ provider }, index) => all.findIndex((other) => other.provider === provider) !== index,
  )
  if (twice)
    return {
      wrong: `contains the provider ${twice.provider} twice, or a provider with the name of the service`,
    }
  for (const { provider, kind, base_url } of all) {
    if (base_url !== undefined && !URL.canParse(base_url))
      return { wrong: `has a base_url that cannot be parsed, in the provider ${provider}` }
    if (kind === 'openai-compatible' && base_url === undefined)
      return { wrong: `needs a base_url for the provider ${provider}` }
  }
  // A provider whose list of models is empty serves only the embedding model. It is not listed.
  const providers = all
    .filter(({ models }) => models.length > 0)
    .map(
      ({ provider, display_name, models }): ModelProvider => ({
        provider,
        display_name: display_name ?? provider,
        source: 'platform',
        models: models.map(({ id, label, price, ...more }) => ({
          id,
          provider,
          label: label ?? id,
          ...more,
          ...(price && { price: price as Price }),
        })),
      }),
    )
  const every = providers.flatMap(({ models }) => models)
  const { ceiling } = value
  const known: Models = {
    default_model: '',
    providers,
    ...(ceiling && { ceiling: ceiling as NonNullable<Models['ceiling']> }),
  }
  const chosen =
    value.default === undefined
      ? (every.find(({ recommended }) => recommended) ?? every[0])
      : findModel(known, value.default)
  if (!chosen) return { wrong: `names the default ${value.default}, but no provider has it` }
  const missing = ceiling?.models?.find((name) => !every.some((model) => fullId(model) === name))
  if (missing !== undefined)
    return { wrong: `allows the model ${missing}, but no provider has it; write provider/model` }
  const access = all.map(
    ({ provider, kind, base_url, key }): ProviderAccess => ({
      provider,
      kind,
      ...(base_url !== undefined && { base_url: base_url.replace(/\/+$/, '') }),
      ...(key !== undefined && { key }),
    }),
  )
  const embedding = value.embedding && embeddingOf(value.embedding, access)
  if (embedding && 'wrong' in embedding) return embedding
  return {
    models: { ...known, default_model: fullId(chosen) },
    silence: (value.silence_seconds ?? DEFAULT_SILENCE_S) * 1000,
    access,
    ...(embedding && { embedding }),
  }
}

/**
 * Returns the settings of the embedding model, which is configured as `<provider>/<model>`, or a
 * description of the fault (`wrong`).
 */
function embeddingOf(
  { model: full, dimensions, max_characters }: Static<typeof Embedding>,
  providers: readonly ProviderAccess[],
): EmbeddingSettings | { readonly wrong: string } {
  const [provider = '', ...rest] = full.split('/')
  const model = rest.join('/')
  const access = providers.find((one) => one.provider === provider)
  if (!access || model === '')
    return {
      wrong: `names the embedding model ${full}, but no provider has it; write provider/model`,
    }
  if (access.kind === 'anthropic' || (access.kind === 'scripted' && model !== HASHED_MODEL))
    return { wrong: `names the embedding model ${full}, but its provider has no such model` }
  return {
    id: dimensions === undefined ? full : `${full}:${dimensions}`,
    access,
    model,
    ...(dimensions !== undefined && { dimensions }),
    max_characters: max_characters ?? EMBEDDED_CHARACTERS,
  }
}
