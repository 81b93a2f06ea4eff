/**
 * The part of an agent's definition that a request can override (inline config). Each field that
 * the config sets replaces the field of the agent. Lists are replaced as a whole.
 */
import { type Static, Type } from 'typebox'
import { Closed } from '../common.ts'
import { skillLimits } from '../skills/schema.ts'
import { toolkitLimits } from '../toolkits/schema.ts'
import { agentLimits, MemoryContext, ThinkingEffort } from './schema.ts'

export const InlineToolkit = Closed({
  name: Type.String({ minLength: 1, maxLength: toolkitLimits.name }),
  actions: Type.Optional(
    Type.Array(
      Type.String({ minLength: 1, maxLength: toolkitLimits.selector, pattern: '^\\S+$' }),
      {
        maxItems: toolkitLimits.selectors,
        description:
          'Names of actions in the catalog; if absent, name refers to an existing toolkit',
      },
    ),
  ),
})
export const InlineSkill = Closed({
  name: Type.String({ minLength: 1, maxLength: skillLimits.name }),
  description: Type.Optional(Type.String({ maxLength: skillLimits.description })),
  body: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: skillLimits.instructions,
      description:
        'Instructions that the agent loads on demand; if absent, name refers to an existing skill',
    }),
  ),
})
export const InlineConfig = Closed({
  instructions: Type.Optional(
    Type.String({
      maxLength: agentLimits.system_prompt,
      description: 'System prompt; if empty, derived from the name of the agent',
    }),
  ),
  model: Type.Optional(Type.String({ maxLength: agentLimits.model })),
  effort: Type.Optional(ThinkingEffort),
  timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 9_007_199_254_740_991,
      description: 'Maximum seconds of active execution in one turn; 0: the default',
    }),
  ),
  memory_context: Type.Optional(MemoryContext),
  toolkits: Type.Optional(Type.Array(InlineToolkit, { maxItems: toolkitLimits.assigned })),
  skills: Type.Optional(Type.Array(InlineSkill, { maxItems: skillLimits.assigned })),
})
export type InlineConfig = Static<typeof InlineConfig>
/**
 * Whether a config is the empty object, which removes the stored config.
 * @public
 */
export const clearsConfig = (config: InlineConfig): boolean => Object.keys(config).length === 0
