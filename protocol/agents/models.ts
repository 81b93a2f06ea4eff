/** The models that the service itself can speak to, and how a text of a request finds one of them. Secrets are not part of it. */
import { Type, type Static } from 'typebox'
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

/** How much a model can be told to think, least first. */
export const efforts = ['low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]
/** The smaller one; a bound that is not there bounds nothing. */
export const atMost = (
  effort: Effort | undefined,
  bound: Effort | undefined,
): Effort | undefined =>
  effort === undefined || bound === undefined
    ? effort
    : efforts[Math.min(efforts.indexOf(effort), efforts.indexOf(bound))]
/** An effort that says something itself; `inherit` leaves it to the next layer. */
export const ownEffort = (effort: ThinkingEffort | undefined): Effort | undefined =>
  effort === 'inherit' ? undefined : effort

/** What a model costs: USD for a million tokens. What caches had costs as much as other input when nothing else is said. */
export interface Price {
  readonly input: number
  readonly output: number
  readonly cache_read?: number
}
/** A model as turns know it. */
export interface Model extends CatalogModel {
  /** Absent: nothing is known, and its use counts against no budget. */
  readonly price?: Price
  /** The most it can be told to think; absent: it takes no such wish. */
  readonly max_effort?: Effort
  /** What it reads besides text; absent: all of it. */
  readonly reads?: readonly ('image' | 'pdf')[]
}
export interface ModelProvider extends Omit<CatalogProvider, 'models'> {
  readonly models: readonly Model[]
}
/** Bounds that no agent, session or request can exceed. */
interface Ceiling {
  readonly timeout_seconds?: number
  readonly effort?: Effort
  /** Ids `provider/model` that may be used at all; absent: all. */
  readonly models?: readonly string[]
}
/** What is configured: models by provider, the default as `provider/model`, and the ceiling. */
export interface Models {
  readonly default_model: string
  readonly providers: readonly ModelProvider[]
  readonly ceiling?: Ceiling
}

/** Tokens that a model of which nothing is known is taken to read. */
export const UNKNOWN_WINDOW = 200_000
/** A model as `provider/model`. */
export const fullId = ({ provider, id }: Pick<Model, 'provider' | 'id'>): string =>
  `${provider}/${id}`

/** The model that a text means: `provider/model`, or the id of one model alone. Undefined when there is none; with several of one id, the first provider's. */
export function findModel({ providers }: Models, text: string): Model | undefined {
  const all = providers.flatMap(({ models }) => models)
  const named = providerOf(text)
  return (
    (named && all.find(({ provider, id }) => provider === named.provider && id === named.model)) ??
    all.find(({ id }) => id === text)
  )
}
/** Whether a model reads files of a type that are no texts. */
export const reads = ({ reads: known }: Pick<Model, 'reads'>, mime_type: string): boolean =>
  known === undefined || known.includes(mime_type.startsWith('image/') ? 'image' : 'pdf')
/** Whether the ceiling lets a model be used. */
export const isAllowed = ({ ceiling }: Models, model: Pick<Model, 'provider' | 'id'>): boolean =>
  ceiling?.models === undefined || ceiling.models.includes(fullId(model))
