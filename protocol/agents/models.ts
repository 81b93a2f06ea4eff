/**
 * The models that the service itself can call, their limits and prices, and the lookup of a model
 * by the name in a request. These records contain no credentials of providers.
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

/** Thinking efforts, lowest first. */
export const efforts = ['low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]
/**
 * Returns the lower of an effort and its bound. An absent effort stays absent, and an absent bound
 * imposes no limit.
 */
export const atMost = (
  effort: Effort | undefined,
  bound: Effort | undefined,
): Effort | undefined =>
  effort === undefined || bound === undefined
    ? effort
    : efforts[Math.min(efforts.indexOf(effort), efforts.indexOf(bound))]
/**
 * Returns the effort that a source sets itself; undefined for `inherit`, which defers to the next
 * source.
 */
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
/** A managed model: its catalog entry, and the price and capabilities that turns need. */
export interface Model extends CatalogModel {
  /** Absent if the price is unknown. Usage of the model then counts against no budget. */
  readonly price?: Price
  /** The highest effort that the model accepts; absent if the model has no effort setting. */
  readonly max_effort?: Effort
  /** The types of files that the model reads in addition to text; images and PDF if absent. */
  readonly reads?: readonly ('image' | 'pdf')[]
}
export interface ModelProvider extends Omit<CatalogProvider, 'models'> {
  readonly models: readonly Model[]
}
/** Limits of the installation that no agent, session or request can exceed. */
interface Ceiling {
  readonly timeout_seconds?: number
  readonly effort?: Effort
  /** The only managed models that may be used, as `provider/model`; all if absent. */
  readonly models?: readonly string[]
}
/**
 * The model configuration of the installation. `default_model` is the default as `provider/model`.
 */
export interface Models {
  readonly default_model: string
  readonly providers: readonly ModelProvider[]
  readonly ceiling?: Ceiling
}

/** The assumed context window, in tokens, of a model that is not in the catalog. */
export const UNKNOWN_WINDOW = 200_000
/** Returns the name of a model as `provider/model`. */
export const fullId = ({ provider, id }: Pick<Model, 'provider' | 'id'>): string =>
  `${provider}/${id}`

/**
 * Returns the model that a text identifies, either as `provider/model` or by the id of the model
 * alone. When several providers have a model with this id, the first provider wins. Returns
 * undefined when there is no such model.
 */
export function findModel({ providers }: Models, text: string): Model | undefined {
  const all = providers.flatMap(({ models }) => models)
  const named = providerOf(text)
  return (
    (named && all.find(({ provider, id }) => provider === named.provider && id === named.model)) ??
    all.find(({ id }) => id === text)
  )
}
/**
 * Whether a model reads files of a type.
 * @param mime_type an image type or `application/pdf`.
 */
export const readsType = ({ reads: known }: Pick<Model, 'reads'>, mime_type: string): boolean =>
  known === undefined || known.includes(mime_type.startsWith('image/') ? 'image' : 'pdf')
/** Whether the ceiling allows a model. */
export const isAllowed = ({ ceiling }: Models, model: Pick<Model, 'provider' | 'id'>): boolean =>
  ceiling?.models === undefined || ceiling.models.includes(fullId(model))
