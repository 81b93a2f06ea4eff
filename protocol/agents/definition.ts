/**
 * Computes the effective definition of a turn: combines the settings of the request, the session,
 * the step and the agent in a fixed order of precedence, within the limits of the installation. The
 * computation is pure: the same sources always yield the same settings, so the settings of every
 * turn can be explained afterwards. Its callers perform the lookups.
 */

import type { FieldError } from '../errors.ts'
import type { Skill } from '../skills/schema.ts'
import type { Selector, Toolkit } from '../toolkits/schema.ts'
import type { InlineConfig } from './inline.ts'
import {
  atMost,
  type Effort,
  findModel,
  fullId,
  isAllowed,
  type Models,
  ownEffort,
  UNKNOWN_WINDOW,
} from './models.ts'
import type {
  Agent,
  CompactionPolicy,
  MemoryContext,
  ModelRoute,
  ThinkingEffort,
} from './schema.ts'
import { providerOf } from './schema.ts'
import { selectorOf } from './selectors.ts'

/**
 * The stored data of an agent that a turn needs: the record of the agent, and its toolkits and
 * skills in the order of assignment.
 */
export interface AgentSource {
  readonly agent: Agent
  readonly toolkits: readonly Toolkit[]
  readonly skills: readonly Skill[]
}
/**
 * Toolkits and skills to which an inline config may refer by name, even if they are not assigned to
 * the agent.
 */
export interface ByName {
  readonly toolkits: readonly Toolkit[]
  readonly skills: readonly Skill[]
}
/** All sources of settings. `effectiveDefinition` documents the precedence. */
export interface Layers {
  readonly source: AgentSource
  readonly models: Models
  readonly config?: InlineConfig
  /** The definition that the organization's resolver sent for the agent. */
  readonly bundle?: InlineConfig
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
  readonly binding_route?: ModelRoute
}
/** The model that generates the text of a turn, and whether the service or a worker calls it. */
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
  /** The size of the model's context window in tokens. */
  readonly window_tokens: number
  /** Absent if the provider's default applies. */
  readonly effort?: Effort
  /** The timeout of the turn in seconds of active execution. */
  readonly timeout_seconds: number
  /** The effective settings. `max_bytes` is 0 if the turn does not include the memory. */
  readonly memory_context: Required<MemoryContext>
  /**
   * `threshold_tokens` is the effective threshold in tokens, even if the policy specifies the
   * threshold by name.
   */
  readonly compaction: {
    readonly strategy: 'auto' | 'manual' | 'disabled'
    readonly threshold_tokens: number
    readonly summary_model?: string
  }
  /** Selectors of the actions that the turn may use as tools. */
  readonly tools: readonly Selector[]
  readonly tool_presentation: 'flat' | 'meta'
  readonly skills: readonly EffectiveSkill[]
}

/** The timeout when no source sets one, in seconds of active execution. */
const DEFAULT_TIMEOUT_S = 600
/**
 * Maximum of `operation.timeout_seconds`. A larger value in a request is reduced to this maximum.
 */
const MAX_OPERATION_SECONDS = 86_400
/** Default maximum size in bytes of the memory in a turn, by mode. */
const MEMORY_BYTES = { index: 1536, full: 131_072, off: 0 } as const
/**
 * The fraction of the context window at which a session is summarized, by name of the threshold.
 */
const SHARES = { xs: 0.1, sm: 0.2, md: 0.4, lg: 0.6, xl: 0.8 } as const

/**
 * Returns the effective definition, or the faults of the request. For each setting, the first
 * source that has a value wins:
 * - timeout: `operation` of the request, step, config, bundle, agent, 600 seconds
 * - effort: session, step, config, bundle, agent
 * - instructions and memory: config, bundle, agent
 * - model: step, config, bundle, binding, agent, default
 * - compaction, each setting separately: session, agent, `auto` at `sm`
 * - tools and skills: config, bundle, otherwise the assignments of the agent
 *
 * The bundle of a resolver is a definition of the same form as a config: each field that it sets
 * replaces the field of the agent.
 *
 * The ceiling of the installation limits the timeout and the effort, and restricts managed models.
 * The maximum of the model also limits the effort.
 */
export function effectiveDefinition(
  layers: Layers,
): EffectiveDefinition | { readonly faults: readonly FieldError[] } {
  const {
    source: { agent },
    models,
  } = layers
  const config = overridesOf(layers)
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

/**
 * Merges the config over the bundle. The result replaces fields of the agent. An empty model and
 * the effort `inherit` count as absent.
 */
function overridesOf({
  bundle = {},
  config = {},
}: Pick<Layers, 'bundle' | 'config'>): InlineConfig {
  const model = config.model || bundle.model
  const effort = ownEffort(config.effort) ?? bundle.effort
  return {
    ...bundle,
    ...config,
    ...(model !== undefined && { model }),
    ...(effort !== undefined && { effort }),
  }
}
/**
 * Returns the layer that sets a field. Its name is the first part of the field's path in faults.
 */
const layerOf = (
  { config }: Pick<Layers, 'config'>,
  field: keyof InlineConfig,
): 'config' | 'bundle' => (config?.[field] ? 'config' : 'bundle')

const generated = ({ name, description }: Agent): string =>
  `You are ${name}, an agent that works in a team of people and systems.${description ? ` ${description}` : ''}`
const instructionsOf = (agent: Agent, { instructions }: InlineConfig): string =>
  (instructions ?? agent.system_prompt) || generated(agent)

const timeoutOf = ({ operation, step, source: { agent }, ...layers }: Layers): number =>
  ((operation?.timeout_seconds === undefined
    ? undefined
    : Math.min(operation.timeout_seconds, MAX_OPERATION_SECONDS)) ??
    step?.timeout_seconds ??
    overridesOf(layers).timeout_seconds ??
    agent.timeout_seconds) ||
  DEFAULT_TIMEOUT_S

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
/**
 * Returns the route with its model. If no model can be used, adds a fault to `faults` and returns
 * undefined. For a model of a worker, only the ceiling limits the effort, because the maximum
 * effort of the model is unknown.
 */
function routeOf(layers: Layers, faults: FieldError[]): Routed | undefined {
  const {
    step,
    binding_route,
    source: { agent },
    models,
  } = layers
  const route = step?.model_route ??
    binding_route ??
    agent.model_route ?? { mode: 'managed' as const }
  const inline = overridesOf(layers).model || undefined
  const [text, field] =
    step?.model_route?.model !== undefined
      ? [spelled(step.model_route), 'model_route.model']
      : inline !== undefined
        ? [inline, `${layerOf(layers, 'model')}.model`]
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
      : fault('must be provider/model, because workers are selected by provider and model')
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

/** A tool selector, and the field of the inline config that contains it. */
export interface ConfiguredTool {
  readonly field: string
  readonly selector: Selector
}
function toolsOf(layers: Layers, faults: FieldError[]): readonly Selector[] {
  const { named, source } = layers
  const overrides = overridesOf(layers)
  if (!overrides.toolkits) return distinct(source.toolkits.flatMap(({ actions }) => actions))
  const known = { source, ...(named && { named }) }
  return distinct(
    configuredTools(overrides, known, faults, layerOf(layers, 'toolkits')).map(
      ({ selector }) => selector,
    ),
  )
}
/**
 * Returns the tool selectors of an inline config, in order.
 * @param faults receives a fault for each toolkit that does not exist.
 * @param layer prefix of the field paths in faults.
 */
export function configuredTools(
  { toolkits = [] }: InlineConfig,
  { source, named }: Pick<Layers, 'source' | 'named'>,
  faults: FieldError[] = [],
  layer = 'config',
): readonly ConfiguredTool[] {
  return toolkits.flatMap(({ name, actions }, index): ConfiguredTool[] => {
    const path = `${layer}.toolkits[${index}]`
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
function skillsOf(layers: Layers, faults: FieldError[]): readonly EffectiveSkill[] {
  const { named, source } = layers
  const { skills } = overridesOf(layers)
  if (!skills) return source.skills.map(effectiveSkill)
  return skills.flatMap(({ name, description, body }, index): EffectiveSkill[] => {
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
        field: `${layerOf(layers, 'skills')}.skills[${index}].name`,
        message: 'there is no skill of this name; give a body',
        actual: name,
      })
    return stored
      ? [{ ...effectiveSkill(stored), ...(description !== undefined && { description }) }]
      : []
  })
}
