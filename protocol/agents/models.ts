/**
 * The models that the service itself can call, and the lookup of a model by the text of a request.
 * Credentials are not part of it.
 */
import { type Static, Type } from 'typebox'
import { providerOf, type ThinkingEffort } from './schema.ts'

export const CatalogModel = Type.Object({
  id: Type.String(),
  provider: Type.String(),
  label: Type.String(),
  context_window_tokens: Type.Integer({ minimum: 1 }),
  description: Type.Optional(Type.String()),
  recommended: Type.Optional(Type.Boolean()),
})
type CatalogModel = Static<typeof CatalogModel>
export const CatalogProvider = Type.Object({
  provider: Type.String(),
  display_name: Type.String(),
  source: Type.Enum(['byok', 'platform']),
  models: Type.Array(CatalogModel),
})
export type CatalogProvider = Static<typeof CatalogProvider>

/** Thinking effort of a model, lowest first. */
export const efforts = ['low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]
/** The lower of an effort and its bound; an absent bound does not limit the effort. */
export const atMost = (
  effort: Effort | undefined,
  bound: Effort | undefined,
): Effort | undefined =>
  effort === undefined || bound === undefined
    ? effort
    : efforts[Math.min(efforts.indexOf(effort), efforts.indexOf(bound))]
/** The effort that a layer sets itself; `inherit` defers to the next layer. */
export const ownEffort = (effort: ThinkingEffort | undefined): Effort | undefined =>
  effort === 'inherit' ? undefined : effort

/**
 * The price of a model in USD per million tokens. Without `cache_read`, cached input costs as much
 * as other input.
 */
export interface Price {
  readonly input: number
  readonly output: number
  readonly cache_read?: number
}
/** A model as turns use it. */
export interface Model extends CatalogModel {
  /** Absent: the price is unknown, and the model's use counts against no budget. */
  readonly price?: Price
  /** The highest effort that the model accepts; absent: the model has no effort setting. */
  readonly max_effort?: Effort
  /** The input types that the model reads besides text; absent: all of them. */
  readonly reads?: readonly ('image' | 'pdf')[]
}
export interface ModelProvider extends Omit<CatalogProvider, 'models'> {
  readonly models: readonly Model[]
}
/** Bounds that no agent, session or request can exceed. */
interface Ceiling {
  readonly timeout_seconds?: number
  readonly effort?: Effort
  /** The only models that may be used, as `provider/model`; absent: all. */
  readonly models?: readonly string[]
}
/**
 * The model configuration: models by provider, the default as `provider/model`, and the ceiling.
 */
export interface Models {
  readonly default_model: string
  readonly providers: readonly ModelProvider[]
  readonly ceiling?: Ceiling
}

/** The context window, in tokens, that is assumed for an unknown model. */
export const UNKNOWN_WINDOW = 200_000
/** A model as `provider/model`. */
export const fullId = ({ provider, id }: Pick<Model, 'provider' | 'id'>): string =>
  `${provider}/${id}`

/**
 * The model that a text refers to: `provider/model`, or only the id of a model. Undefined when
 * there is none. When several providers have the id, the first provider's model is returned.
 */
export function findModel({ providers }: Models, text: string): Model | undefined {
  const all = providers.flatMap(({ models }) => models)
  const named = providerOf(text)
  return (
    (named && all.find(({ provider, id }) => provider === named.provider && id === named.model)) ??
    all.find(({ id }) => id === text)
  )
}
/** Whether a model reads files of a non-text type. */
export const reads = ({ reads: known }: Pick<Model, 'reads'>, mime_type: string): boolean =>
  known === undefined || known.includes(mime_type.startsWith('image/') ? 'image' : 'pdf')
/** Whether the ceiling allows a model. */
export const isAllowed = ({ ceiling }: Models, model: Pick<Model, 'provider' | 'id'>): boolean =>
  ceiling?.models === undefined || ceiling.models.includes(fullId(model))
