/**
 * The definition of a turn: its layers, their order, and the ceiling that limits them. Also covers
 * the actions that a selector matches.
 */
import fc from 'fast-check'
import t from 'tap'
import { endpointPermissions } from '../../protocol/actions/builtin.ts'
import type { Layers } from '../../protocol/agents/definition.ts'
import { efforts, type Models } from '../../protocol/agents/models.ts'
import type { Agent } from '../../protocol/agents/schema.ts'
import {
  allowedBy,
  globMatches,
  type Named,
  permissionsOver,
  resolveSelectors,
  selectorOf,
  selects,
  textSelects,
} from '../../protocol/agents/selectors.ts'
import type { Skill } from '../../protocol/skills/schema.ts'
import type { Selector, Toolkit } from '../../protocol/toolkits/schema.ts'
import { faults, given } from './support/layers.ts'

const at = '2026-01-01T00:00:00.000Z'
const agentWith = (more: Partial<Agent> = {}): Agent => ({
  id: 'agt_1',
  principal_id: 'agt_1',
  name: 'Ada',
  status: 'active',
  created_at: at,
  updated_at: at,
  ...more,
})
const toolkit = (name: string, ...actions: string[]): Toolkit => ({
  id: `kit_${name}`,
  name,
  source: 'project',
  actions: actions.map(selectorOf),
  created_at: at,
  updated_at: at,
})
const skill = (name: string, more: Partial<Skill> = {}): Skill => ({
  id: `skill_${name}`,
  name,
  source: 'project',
  instructions: `how to ${name}`,
  created_at: at,
  updated_at: at,
  ...more,
})
const model = (id: string, more: object = {}) => ({
  id,
  provider: 'acme',
  label: id,
  context_window_tokens: 100_000,
  ...more,
})
const models: Models = {
  default_model: 'acme/small',
  providers: [
    {
      provider: 'acme',
      display_name: 'Acme',
      source: 'platform',
      models: [
        model('small', { max_effort: 'max' }),
        model('tiny', { context_window_tokens: 1000 }),
      ],
    },
    {
      provider: 'lab',
      display_name: 'Lab',
      source: 'byok',
      models: [
        { ...model('small'), provider: 'lab' },
        { ...model('family/big'), provider: 'lab', max_effort: 'medium' },
      ],
    },
  ],
}
const layersWith = (more: Partial<Layers> = {}, agent: Partial<Agent> = {}): Layers => ({
  source: { agent: agentWith(agent), toolkits: [], skills: [] },
  models,
  ...more,
})

t.test('an agent with only a name has defaults for everything', async (t) => {
  t.same(given(layersWith()), {
    instructions: 'You are Ada, an agent that works in a team of people and systems.',
    route: { mode: 'managed', provider: 'acme', model: 'small' },
    window_tokens: 100_000,
    timeout_seconds: 600,
    memory_context: { mode: 'index', max_bytes: 1536 },
    compaction: { strategy: 'auto', threshold_tokens: 20_000 },
    tools: [],
    tool_presentation: 'meta',
    skills: [],
  })
})

t.test('an operation timeout above the maximum is reduced to it', async (t) => {
  const seconds = (timeout_seconds: number, ceiling?: number) =>
    given(
      layersWith({
        operation: { timeout_seconds },
        models: {
          ...models,
          ...(ceiling !== undefined && { ceiling: { timeout_seconds: ceiling } }),
        },
      }),
    ).timeout_seconds
  t.same(
    [seconds(86_400), seconds(86_401), seconds(Number.MAX_SAFE_INTEGER), seconds(86_401, 900)],
    [86_400, 86_400, 86_400, 900],
  )
})

t.test('models are found by full id, by bare id, or not at all', async (t) => {
  const routed = (text: string) => given(layersWith({}, { model: text })).route
  t.same(routed('lab/small'), { mode: 'managed', provider: 'lab', model: 'small' })
  t.same(routed('small'), { mode: 'managed', provider: 'acme', model: 'small' })
  t.same(routed('lab/family/big'), { mode: 'managed', provider: 'lab', model: 'family/big' })
  t.same(
    routed('family/big'),
    { mode: 'managed', provider: 'lab', model: 'family/big' },
    'ids may have slashes',
  )
  t.same(faults(layersWith({}, { model: 'acme/huge' })), ['model'])
  t.same(faults(layersWith({ config: { model: 'nobody' } })), ['config.model'])
  t.same(
    faults(layersWith({ models: { ...models, ceiling: { models: ['acme/tiny'] } } })),
    ['model'],
    'also the default has to be allowed',
  )
})

t.test('routes: the step, then the binding, then the agent', async (t) => {
  const worker = {
    mode: 'worker',
    provider: 'ollama',
    model: 'llama',
    environment_id: 'env_1',
  } as const
  t.same(given(layersWith({}, { model_route: worker })).route, worker)
  t.same(given(layersWith({ config: { model: 'vllm/qwen' } }, { model_route: worker })).route, {
    ...worker,
    provider: 'vllm',
    model: 'qwen',
  })
  t.same(given(layersWith({ config: { model: 'qwen' } }, { model_route: worker })).route, {
    ...worker,
    model: 'qwen',
  })
  t.same(
    given(layersWith({ step: { model_route: { mode: 'managed' } } }, { model_route: worker })).route
      .mode,
    'managed',
  )
  t.same(
    given(
      layersWith(
        { binding_route: { mode: 'managed', provider: 'acme', model: 'tiny' } },
        { model_route: worker, model: 'small' },
      ),
    ).route.model,
    'tiny',
  )
  t.same(
    given(layersWith({ step: { model_route: worker }, config: { model: 'tiny' } })).route,
    worker,
    'a model that the step names wins',
  )
  t.same(given(layersWith({}, { model: 'ollama/llama', model_route: { mode: 'worker' } })).route, {
    mode: 'worker',
    provider: 'ollama',
    model: 'llama',
  })
  t.same(faults(layersWith({ config: { model: 'llama' } }, { model_route: { mode: 'worker' } })), [
    'config.model',
  ])
})

t.test('inline toolkits and skills replace the lists and can refer to stored ones', async (t) => {
  const source = {
    agent: agentWith(),
    toolkits: [toolkit('crm', 'crm.find', 'crm.*'), toolkit('more', 'crm.find')],
    skills: [skill('greet', { allowed_tools: ['crm.find'] })],
  }
  t.same(given(layersWith({ source })).tools, [
    { selector_type: 'exact', selector: 'crm.find' },
    { selector_type: 'wildcard', selector: 'crm.*' },
  ])
  t.same(given(layersWith({ source, config: { toolkits: [] } })).tools, [])
  t.same(
    given(
      layersWith({
        source,
        config: { toolkits: [{ name: 'own', actions: ['x.y'] }, { name: 'more' }] },
      }),
    ).tools,
    [
      { selector_type: 'exact', selector: 'x.y' },
      { selector_type: 'exact', selector: 'crm.find' },
    ],
  )
  t.same(given(layersWith({ source })).skills, [
    { name: 'greet', instructions: 'how to greet', allowed_tools: ['crm.find'] },
  ])
  t.same(
    given(
      layersWith({
        source,
        named: { toolkits: [], skills: [skill('sing')] },
        config: { skills: [{ name: 'sing' }, { name: 'own', body: 'do it', description: 'd' }] },
      }),
    ).skills,
    [
      { name: 'sing', instructions: 'how to sing', allowed_tools: [] },
      { name: 'own', instructions: 'do it', description: 'd', allowed_tools: [] },
    ],
  )
  t.same(
    faults(
      layersWith({
        source,
        config: { toolkits: [{ name: 'none' }], skills: [{ name: 'none' }], model: 'none' },
      }),
    ),
    ['config.model', 'config.toolkits[0].name', 'config.skills[0].name'],
  )
})

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const effort = maybe(fc.constantFrom('inherit' as const, ...efforts))
const seconds = maybe(fc.nat(2000))
const policy = maybe(
  fc.record(
    {
      strategy: fc.constantFrom(
        'auto' as const,
        'manual' as const,
        'none' as const,
        'disabled' as const,
      ),
      threshold: fc.constantFrom('xs' as const, 'xl' as const),
      summary_model: fc.constant('m'),
    },
    { requiredKeys: [] },
  ),
)
const drop = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T
const anyLayers = fc.record({
  agent: fc.record({
    system_prompt: maybe(fc.constantFrom('', 'agent')),
    timeout_seconds: seconds,
    thinking_effort: effort,
    compaction_policy: policy,
    model: maybe(fc.constantFrom('tiny', 'lab/family/big')),
  }),
  config: maybe(
    fc.record({
      instructions: maybe(fc.constantFrom('', 'inline')),
      timeout_seconds: seconds,
      effort,
      model: maybe(fc.constantFrom('small', 'lab/small')),
    }),
  ),
  operation: maybe(fc.record({ timeout_seconds: fc.integer({ min: 1, max: 2000 }) })),
  session: maybe(fc.record({ thinking_effort: effort, compaction_policy: policy })),
  ceiling: maybe(
    fc.record({
      timeout_seconds: maybe(fc.integer({ min: 1, max: 1000 })),
      effort: maybe(fc.constantFrom(...efforts)),
    }),
  ),
})

t.test('the first layer with a value wins, and the ceiling always applies', async () => {
  void fc.assert(
    fc.property(anyLayers, ({ agent, config, operation, session, ceiling }) => {
      const layers: Layers = {
        ...layersWith({}, drop(agent) as Partial<Agent>),
        models: { ...models, ...(ceiling && { ceiling: drop(ceiling) as never }) },
        ...(config && { config: drop(config) as never }),
        ...(operation && { operation }),
        ...(session && { session: drop(session) as never }),
      }
      const definition = given(layers)
      const bound = ceiling?.timeout_seconds ?? Number.POSITIVE_INFINITY
      const wished =
        [operation?.timeout_seconds, config?.timeout_seconds, agent.timeout_seconds].find(
          (value) => value !== undefined,
        ) || 600
      if (definition.timeout_seconds !== Math.min(wished, bound) || definition.timeout_seconds < 1)
        throw new Error('timeout')
      const expected = config?.model ?? agent.model ?? 'acme/small'
      const full = `${definition.route.provider}/${definition.route.model}`
      if (full !== expected && definition.route.model !== expected) throw new Error('model')
      const most = models.providers
        .flatMap((one) => one.models)
        .find((one) => `${one.provider}/${one.id}` === full)?.max_effort
      const wish = [session?.thinking_effort, config?.effort, agent.thinking_effort].find(
        (value) => value !== undefined && value !== 'inherit',
      ) as (typeof efforts)[number] | undefined
      const least =
        most &&
        wish &&
        efforts[
          Math.min(
            ...[wish, most, ceiling?.effort]
              .filter((value) => value !== undefined)
              .map((value) => efforts.indexOf(value)),
          )
        ]
      if (definition.effort !== least)
        throw new Error(`effort ${definition.effort} instead of ${least}`)
      const text = config?.instructions ?? agent.system_prompt
      if (
        text ? definition.instructions !== text : !definition.instructions.startsWith('You are Ada')
      )
        throw new Error('instructions')
      const strategy =
        session?.compaction_policy?.strategy ?? agent.compaction_policy?.strategy ?? 'auto'
      if (definition.compaction.strategy !== (strategy === 'none' ? 'disabled' : strategy))
        throw new Error('compaction')
      const share = { xs: 0.1, xl: 0.8, sm: 0.2 }[
        session?.compaction_policy?.threshold ?? agent.compaction_policy?.threshold ?? 'sm'
      ]
      if (definition.compaction.threshold_tokens !== Math.floor(definition.window_tokens * share))
        throw new Error('threshold')
      // An empty config has no effect.
      const { config: _, ...others } = layers
      if (
        config &&
        Object.keys(drop(config)).length === 0 &&
        JSON.stringify(definition) !== JSON.stringify(given(others))
      )
        throw new Error('an empty config')
    }),
    { numRuns: 2000 },
  )
})

const entries: readonly Named[] = [
  { name: 'service.memory.remember', source: 'platform' },
  { name: 'service.memory.forget', source: 'platform' },
  { name: 'github.issue.create', source: 'platform' },
  { name: 'crm.sync', source: 'custom' },
  { name: 'crm.find', source: 'custom' },
]
const names = (selector_type: Selector['selector_type'], selector: string, groups = {}) =>
  entries
    .filter((entry) => selects({ selector_type, selector }, entry, groups))
    .map(({ name }) => name)

t.test('selectors of every type', async (t) => {
  t.same(names('exact', 'crm.sync'), ['crm.sync'])
  t.same(names('exact', 'crm.*'), [])
  t.same(names('group', 'crm'), ['crm.sync', 'crm.find'])
  t.same(names('group', 'writers', { writers: ['crm.sync', 'github.issue.create'] }), [
    'github.issue.create',
    'crm.sync',
  ])
  t.same(names('platform', 'platform.github.*'), ['github.issue.create'])
  t.same(names('platform', 'github.*'), ['github.issue.create'])
  t.same(names('platform', 'crm.*'), [], 'not an action of the service')
  t.same(names('custom', 'custom.*'), ['crm.sync', 'crm.find'])
  t.same(names('wildcard', '*').length, 5)
  t.same(names('wildcard', '*.issue.*'), ['github.issue.create'])
  t.match(resolveSelectors([selectorOf('crm.*'), selectorOf('gone')], entries, {}), {
    matched: [{ name: 'crm.sync' }, { name: 'crm.find' }],
    unmatched: [{ selector: 'gone' }],
  })
  t.same(allowedBy([], entries, {}).length, 5)
  t.same(
    allowedBy(['crm', 'platform.github.*'], entries, {}).map(({ name }) => name),
    ['github.issue.create', 'crm.sync', 'crm.find'],
  )
  t.ok(textSelects('service.memory.*', entries[0] as Named, {}))
})

t.test('patterns match like their equivalent regular expression', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 12 })
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*'), maxLength: 8 })
  void fc.assert(
    fc.property(
      pattern,
      text,
      (glob, name) =>
        globMatches(glob, name) ===
        new RegExp(`^${glob.replaceAll('.', '\\.').replaceAll(/\*+/g, '.*')}$`).test(name),
    ),
    { numRuns: 3000 },
  )
})

t.test('permissions that cover selectors', async (t) => {
  const groups = { 'service.table.read': ['service.table.query', 'service.table.search'] }
  const over = (selector_type: Selector['selector_type'], selector: string) =>
    permissionsOver({ selector_type, selector }, groups)
  t.same(over('exact', 'crm.sync'), ['actions.execute.crm.sync'])
  t.same(over('group', 'crm'), ['actions.execute.crm.*'])
  t.same(over('group', 'service.table.read'), [
    'actions.execute.service.table.query',
    'actions.execute.service.table.search',
  ])
  t.same(over('wildcard', 'crm.*.find'), ['actions.execute.crm.*'])
  t.same(over('custom', 'custom.*'), ['actions.execute.*'])
})
t.test('selectors of actions on tables need the permissions of endpoints', async (t) => {
  const needed = (selector_type: Selector['selector_type'], selector: string) =>
    endpointPermissions('service', { selector_type, selector })
  t.same(needed('group', 'service.table.read'), ['project.view'])
  t.same(needed('group', 'service.table.write'), ['project.edit'])
  t.same(needed('group', 'service.table'), ['project.view', 'project.edit'])
  t.same(needed('wildcard', '*'), ['project.view', 'project.edit'])
  t.same(needed('exact', 'service.table.upsert'), ['project.edit'])
  t.same(needed('exact', 'service.table.read'), [], 'a group is not an action')
  t.same(needed('custom', 'custom.*'), [], 'they are actions of the service')
  t.same(needed('group', 'service.memory'), [])
})
