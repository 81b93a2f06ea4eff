/**
 * The definition that a turn runs with: what the request, the session, the step and the agent say, in one order, under the
 * bounds of the installation. A pure function, so that every turn can be explained afterwards.
 */
import type {
  Agent,
  CompactionPolicy,
  MemoryContext,
  ModelRoute,
  ThinkingEffort,
} from './schema.ts'
import { providerOf } from './schema.ts'
import type { FieldError } from '../errors.ts'
import type { Skill } from '../skills/schema.ts'
import type { Selector, Toolkit } from '../toolkits/schema.ts'
import type { InlineConfig } from './inline.ts'
import {
  atMost,
  findModel,
  fullId,
  isAllowed,
  ownEffort,
  UNKNOWN_WINDOW,
  type Effort,
  type Models,
} from './models.ts'
import { selectorOf } from './selectors.ts'

/** What is stored of an agent for a turn: its record and what it was given, in the order of the assignments. */
export interface AgentSource {
  readonly agent: Agent
  readonly toolkits: readonly Toolkit[]
  readonly skills: readonly Skill[]
}
/** Toolkits and skills that an inline config may mean by name, whether the agent has them or not. */
export interface ByName {
  readonly toolkits: readonly Toolkit[]
  readonly skills: readonly Skill[]
}
/** Everything that has a say, the first layer of each setting as `effectiveDefinition` documents it. */
export interface Layers {
  readonly source: AgentSource
  readonly models: Models
  readonly config?: InlineConfig
  readonly named?: ByName
  readonly operation?: { readonly timeout_seconds?: number }
  readonly step?: {
    readonly timeout_seconds?: number
    readonly thinking_effort?: ThinkingEffort
    readonly model_route?: ModelRoute
  }
  readonly session?: {
    readonly thinking_effort?: ThinkingEffort
    readonly compaction_policy?: CompactionPolicy
  }
  /** The route of a messaging binding. */
  readonly binding_route?: ModelRoute
}
/** Where and by what a turn's text is generated. */
interface EffectiveRoute {
  readonly mode: 'managed' | 'worker'
  readonly provider: string
  readonly model: string
  readonly environment_id?: string
}
export interface EffectiveSkill extends Pick<Skill, 'name' | 'description' | 'instructions'> {
  readonly allowed_tools: readonly string[]
}
export interface EffectiveDefinition {
  readonly instructions: string
  readonly route: EffectiveRoute
  /** Tokens that the model reads. */
  readonly window_tokens: number
  /** Absent: what the provider does by itself. */
  readonly effort?: Effort
  /** Seconds of active execution. */
  readonly timeout_seconds: number
  /** `max_bytes` is the real bound, 0 when nothing is injected. */
  readonly memory_context: Required<MemoryContext>
  /** `threshold_tokens` is the real one. */
  readonly compaction: {
    readonly strategy: 'auto' | 'manual' | 'disabled'
    readonly threshold_tokens: number
    readonly summary_model?: string
  }
  /** Which actions are its tools. */
  readonly tools: readonly Selector[]
  readonly tool_presentation: 'flat' | 'meta'
  readonly skills: readonly EffectiveSkill[]
}

/** Seconds of active execution when nobody says how many. */
const DEFAULT_TIMEOUT = 600
/** The most that an operation may ask for. */
const LONGEST_OPERATION = 86_400
const MEMORY_BYTES = { index: 1536, full: 131_072, off: 0 } as const
/** Share of the window at which a session is summed up. */
const SHARES = { xs: 0.1, sm: 0.2, md: 0.4, lg: 0.6, xl: 0.8 } as const

/**
 * The effective definition, or every field of the request that stands against it. First wins:
 * timeout: operation, step, config, agent, 600; effort: session, step, config, agent; model: step, config, binding, agent,
 * default; compaction: session, agent, `auto` at `sm`, field by field; tools and skills: config, else assignments. Then the ceiling.
 */
export function effectiveDefinition(
  layers: Layers,
): EffectiveDefinition | { readonly faults: readonly FieldError[] } {
  const {
    source: { agent },
    models,
    config = {},
  } = layers
  const faults: FieldError[] = []
  const routed = routeOf(layers, faults)
  const tools = toolsOf(layers, faults)
  const skills = skillsOf(layers, faults)
  if (faults.length > 0 || !routed) return { faults }
  const { ceiling } = models
  const asked =
    ownEffort(layers.session?.thinking_effort) ??
    ownEffort(layers.step?.thinking_effort) ??
    ownEffort(config.effort) ??
    ownEffort(agent.thinking_effort)
  const effort = routed.thinks
    ? atMost(atMost(asked, ceiling?.effort), routed.max_effort)
    : undefined
  return {
    instructions: instructionsOf(agent, config),
    route: routed.route,
    window_tokens: routed.window,
    ...(effort !== undefined && { effort }),
    timeout_seconds: Math.min(
      timeoutOf(layers),
      ceiling?.timeout_seconds ?? Number.POSITIVE_INFINITY,
    ),
    memory_context: memoryOf(config.memory_context ?? agent.memory_context),
    compaction: compactionOf(layers, routed.window),
    tools,
    tool_presentation: agent.tool_presentation ?? 'meta',
    skills,
  }
}

/** The instructions of an agent that was given none. */
const generated = ({ name, description }: Agent): string =>
  `You are ${name}, an agent that works in a team of people and systems.${description ? ` ${description}` : ''}`
const instructionsOf = (agent: Agent, { instructions }: InlineConfig): string =>
  (instructions ?? agent.system_prompt) || generated(agent)

const timeoutOf = ({ operation, step, config, source: { agent } }: Layers): number =>
  ((operation?.timeout_seconds === undefined
    ? undefined
    : Math.min(operation.timeout_seconds, LONGEST_OPERATION)) ??
    step?.timeout_seconds ??
    config?.timeout_seconds ??
    agent.timeout_seconds) ||
  DEFAULT_TIMEOUT

const memoryOf = (
  { mode, max_bytes = 0 }: MemoryContext = { mode: 'index' },
): Required<MemoryContext> => ({
  mode,
  max_bytes: mode === 'off' ? 0 : max_bytes || MEMORY_BYTES[mode],
})

function compactionOf(
  { session, source: { agent } }: Layers,
  window: number,
): EffectiveDefinition['compaction'] {
  const layers = [session?.compaction_policy ?? {}, agent.compaction_policy ?? {}]
  const strategy = layers.find((layer) => layer.strategy !== undefined)?.strategy ?? 'auto'
  const sized = layers.find(
    (layer) => layer.threshold !== undefined || layer.threshold_tokens !== undefined,
  )
  const summary_model = layers.find((layer) => layer.summary_model !== undefined)?.summary_model
  return {
    strategy: strategy === 'none' ? 'disabled' : strategy,
    threshold_tokens:
      sized?.threshold_tokens ?? Math.max(1, Math.floor(window * SHARES[sized?.threshold ?? 'sm'])),
    ...(summary_model !== undefined && { summary_model }),
  }
}

interface Routed {
  readonly route: EffectiveRoute
  readonly window: number
  readonly thinks: boolean
  readonly max_effort?: Effort
}
/** The route, and the model on it; a worker's models are its own affair, so nothing bounds the effort there. */
function routeOf(
  { step, binding_route, config, source: { agent }, models }: Layers,
  faults: FieldError[],
): Routed | undefined {
  const route = step?.model_route ??
    binding_route ??
    agent.model_route ?? { mode: 'managed' as const }
  const inline = config?.model === '' ? undefined : config?.model
  const [text, field] =
    step?.model_route?.model !== undefined
      ? [spelled(step.model_route), 'model_route.model']
      : inline !== undefined
        ? [inline, 'config.model']
        : route.model !== undefined
          ? [spelled(route), 'model_route.model']
          : [agent.model ?? (route.mode === 'managed' ? models.default_model : undefined), 'model']
  const fault = (message: string): undefined =>
    void faults.push({ field, message, ...(text !== undefined && { actual: text }) })
  const environment = route.environment_id !== undefined && { environment_id: route.environment_id }
  if (route.mode === 'worker') {
    const named =
      text === undefined
        ? undefined
        : (providerOf(text) ??
          (route.provider === undefined ? undefined : { provider: route.provider, model: text }))
    return named
      ? {
          route: { mode: 'worker', ...named, ...environment },
          window: UNKNOWN_WINDOW,
          thinks: true,
        }
      : fault('a worker is found by provider and model: write provider/model')
  }
  const model = text === undefined || text === '' ? undefined : findModel(models, text)
  if (!model) return fault('there is no such model; see the catalog of models')
  if (!isAllowed(models, model)) return fault(`${fullId(model)} may not be used here`)
  return {
    route: { mode: 'managed', provider: model.provider, model: model.id },
    window: model.context_window_tokens,
    thinks: model.max_effort !== undefined,
    ...(model.max_effort !== undefined && { max_effort: model.max_effort }),
  }
}
const spelled = ({ provider, model = '' }: ModelRoute): string =>
  provider === undefined ? model : `${provider}/${model}`

/** A selector of a tool, and the field of the inline config that gives it. */
export interface ConfiguredTool {
  readonly field: string
  readonly selector: Selector
}
function toolsOf({ config, named, source }: Layers, faults: FieldError[]): readonly Selector[] {
  if (!config?.toolkits) return distinct(source.toolkits.flatMap(({ actions }) => actions))
  return distinct(
    configuredTools(config, { source, ...(named && { named }) }, faults).map(
      ({ selector }) => selector,
    ),
  )
}
/** The tools that an inline config gives, in its order. @param faults takes the toolkits that do not exist. */
export function configuredTools(
  { toolkits = [] }: InlineConfig,
  { source, named }: Pick<Layers, 'source' | 'named'>,
  faults: FieldError[] = [],
): readonly ConfiguredTool[] {
  return toolkits.flatMap(({ name, actions }, index): ConfiguredTool[] => {
    const path = `config.toolkits[${index}]`
    if (actions)
      return actions.map((text, at) => ({
        field: `${path}.actions[${at}]`,
        selector: selectorOf(text),
      }))
    const stored = [...source.toolkits, ...(named?.toolkits ?? [])].find(
      (toolkit) => toolkit.name === name,
    )
    if (!stored)
      faults.push({
        field: `${path}.name`,
        message: 'there is no toolkit of this name; give actions',
        actual: name,
      })
    return (stored?.actions ?? []).map((selector) => ({ field: `${path}.name`, selector }))
  })
}
function distinct(selectors: readonly Selector[]): readonly Selector[] {
  const seen = new Map(
    selectors.map((selector) => [`${selector.selector_type} ${selector.selector}`, selector]),
  )
  return [...seen.values()]
}

const effectiveSkill = ({
  name,
  description,
  instructions,
  allowed_tools = [],
}: Skill): EffectiveSkill => ({
  name,
  instructions,
  allowed_tools,
  ...(description !== undefined && { description }),
})
function skillsOf(
  { config, named, source }: Layers,
  faults: FieldError[],
): readonly EffectiveSkill[] {
  if (!config?.skills) return source.skills.map(effectiveSkill)
  return config.skills.flatMap(({ name, description, body }, index): EffectiveSkill[] => {
    if (body !== undefined)
      return [
        {
          name,
          instructions: body,
          allowed_tools: [],
          ...(description !== undefined && { description }),
        },
      ]
    const stored = [...source.skills, ...(named?.skills ?? [])].find((skill) => skill.name === name)
    if (!stored)
      faults.push({
        field: `config.skills[${index}].name`,
        message: 'there is no skill of this name; give a body',
        actual: name,
      })
    return stored
      ? [{ ...effectiveSkill(stored), ...(description !== undefined && { description }) }]
      : []
  })
}
