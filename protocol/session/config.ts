/** The definition that a session carries itself, and how long it is kept. */
import { Type, type Static } from 'typebox'
import { MemoryContext, ThinkingEffort } from '../agents.ts'
import { Closed } from '../common.ts'

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
