/** What a turn runs with, as clients write it: effort, compaction, memory, model route, and the inline definition of a session. */
import { Type, type Static } from 'typebox'
import { Closed } from '../common.ts'

export const ThinkingEffort = Type.Enum(['inherit', 'low', 'medium', 'high', 'xhigh', 'max'], { description: 'inherit: what the layer below says' })
export type ThinkingEffort = Static<typeof ThinkingEffort>

export const CompactionPolicy = Closed({
  strategy: Type.Optional(Type.Enum(['auto', 'manual', 'disabled', 'none'], { description: 'none is another word for disabled' })),
  threshold: Type.Optional(Type.Enum(['xs', 'sm', 'md', 'lg', 'xl'], { description: 'Share of the context window of the model: 10, 20, 40, 60, 80 percent' })),
  threshold_tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000_000 })),
  summary_model: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
})
export type CompactionPolicy = Static<typeof CompactionPolicy>

export const MemoryContext = Closed({ mode: Type.Enum(['index', 'full', 'off']), max_bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: 245_760 })) })
export type MemoryContext = Static<typeof MemoryContext>

export const ModelRoute = Closed({
  mode: Type.Enum(['managed', 'worker']), environment_id: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  provider: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })), model: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
})
export type ModelRoute = Static<typeof ModelRoute>

const Name = Type.String({ minLength: 1, maxLength: 128 })
/** The definition that a session carries itself; `{}` clears it. Whole lists replace whole lists. */
export const InlineConfig = Closed({
  instructions: Type.Optional(Type.String({ maxLength: 131_072 })),
  model: Type.Optional(Type.String({ maxLength: 256 })),
  effort: Type.Optional(ThinkingEffort),
  timeout_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400, description: '0: the default of the platform' })),
  memory_context: Type.Optional(MemoryContext),
  toolkits: Type.Optional(Type.Array(Closed({ name: Name, actions: Type.Optional(Type.Array(Name, { maxItems: 200 })) }), { maxItems: 50 })),
  skills: Type.Optional(Type.Array(Closed({ name: Name, description: Type.Optional(Type.String({ maxLength: 1024 })), body: Type.Optional(Type.String({ maxLength: 131_072 })) }), { maxItems: 50 })),
})
export type InlineConfig = Static<typeof InlineConfig>

export const Retention = Closed({ mode: Type.Enum(['standard', 'bounded']), ttl_seconds: Type.Optional(Type.Integer({ minimum: 3600, maximum: 2_592_000, description: 'Required for bounded: idle seconds after which the transcript is pruned' })) })
export type Retention = Static<typeof Retention>

/** Tokens that a model takes, when nobody knows better, and the share of them that each threshold stands for. */
const WINDOW = 200_000
const shares = { xs: 0.1, sm: 0.2, md: 0.4, lg: 0.6, xl: 0.8 } as const
/** The tokens at which a session compacts by itself; undefined: it does not. @param policies first wins, field by field. */
export function compactionThreshold(...policies: readonly (CompactionPolicy | undefined)[]): number | undefined {
  const strategy = policies.find((policy) => policy?.strategy)?.strategy ?? 'auto'
  if (strategy !== 'auto') return undefined
  const sized = policies.find((policy) => policy?.threshold_tokens !== undefined || policy?.threshold !== undefined)
  return sized?.threshold_tokens ?? Math.floor(WINDOW * shares[sized?.threshold ?? 'sm'])
}
