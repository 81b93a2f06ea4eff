/** The definition that a resolver sent, as a layer between an agent and an inline config. */
import fc from 'fast-check'
import t from 'tap'
import type { EffectiveDefinition, Layers } from '../../../protocol/agents/definition.ts'
import { efforts, type Models } from '../../../protocol/agents/models.ts'
import { faults, given } from '../support/layers.ts'

const at = '2026-01-01T00:00:00.000Z'
const models: Models = {
  default_model: 'acme/small',
  providers: [
    {
      provider: 'acme',
      display_name: 'Acme',
      source: 'byok',
      models: ['small', 'large'].map((id) => ({
        id,
        provider: 'acme',
        label: id,
        context_window_tokens: 100_000,
        max_effort: 'high' as const,
      })),
    },
  ],
}
const layersWith = (more: Partial<Layers> = {}): Layers => ({
  source: {
    agent: {
      id: 'agt_1',
      principal_id: 'agt_1',
      name: 'Ada',
      status: 'active',
      system_prompt: 'Stored.',
      model: 'large',
      timeout_seconds: 77,
      created_at: at,
      updated_at: at,
    },
    toolkits: [],
    skills: [],
  },
  models,
  ...more,
})

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const named = { name: fc.constantFrom('crm', 'none') }
const overrides = fc
  .record({
    instructions: maybe(fc.constantFrom('', 'inline', 'other')),
    timeout_seconds: maybe(fc.nat(2000)),
    effort: maybe(fc.constantFrom('inherit' as const, ...efforts)),
    model: maybe(fc.constantFrom('', 'small', 'acme/large')),
    memory_context: maybe(fc.record({ mode: fc.constantFrom('full' as const, 'off' as const) })),
    toolkits: maybe(
      fc.array(fc.record({ ...named, actions: fc.constant(['a.b']) }), { maxLength: 2 }),
    ),
    skills: maybe(
      fc.array(fc.record({ ...named, body: fc.string({ minLength: 1 }) }), { maxLength: 2 }),
    ),
  })
  .map(
    (all) =>
      Object.fromEntries(
        Object.entries(all).filter(([, value]) => value !== undefined),
      ) as NonNullable<Layers['bundle']>,
  )

t.test('a bundle has the effect of a config, and a config wins field by field', async (t) => {
  fc.assert(
    fc.property(overrides, overrides, (bundle, config) => {
      const bundled = given(layersWith({ bundle }))
      const configured = given(layersWith({ config }))
      t.strictSame(bundled, given(layersWith({ config: bundle })))
      const both = given(layersWith({ bundle, config }))
      const wins = (set: boolean, field: keyof EffectiveDefinition) =>
        t.strictSame(both[field], (set ? configured : bundled)[field], field)
      wins(config.instructions !== undefined, 'instructions')
      wins(config.timeout_seconds !== undefined, 'timeout_seconds')
      wins(config.effort !== undefined && config.effort !== 'inherit', 'effort')
      wins(Boolean(config.model), 'route')
      wins(config.memory_context !== undefined, 'memory_context')
      wins(config.toolkits !== undefined, 'tools')
      wins(config.skills !== undefined, 'skills')
    }),
  )
})

t.test('an empty bundle leaves the settings of the agent', async (t) => {
  t.strictSame(given(layersWith({ bundle: {} })), given(layersWith()))
})

t.test('the ceiling limits a bundle', async (t) => {
  const bundle = { model: 'large', effort: 'max' as const, timeout_seconds: 5000 }
  const ceiling = { timeout_seconds: 60, effort: 'low' as const, models: ['acme/small'] }
  t.match(
    given(layersWith({ bundle: { ...bundle, model: 'small' }, models: { ...models, ceiling } })),
    {
      timeout_seconds: 60,
      effort: 'low',
    },
  )
  t.strictSame(faults(layersWith({ bundle, models: { ...models, ceiling } })), ['bundle.model'])
})

t.test('faults name the layer that they are in', async (t) => {
  const bundle = {
    model: 'nobody',
    toolkits: [{ name: 'nowhere' }],
    skills: [{ name: 'nothing' }],
  }
  t.strictSame(faults(layersWith({ bundle })), [
    'bundle.model',
    'bundle.toolkits[0].name',
    'bundle.skills[0].name',
  ])
  const config = { model: 'small', toolkits: [], skills: [] }
  t.strictSame(faults(layersWith({ bundle, config })), [])
})
